/** The organization's call limits, for the settings of the organization. */
import { useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import { LimitsForm } from "./limits-form";
import { type CallLimits, CurrentCallLimits } from "./operations";

export function CallLimitsSection() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [limits, setLimits] = useState<CallLimits | null>(null);
  useEffect(() => {
    request(direct, CurrentCallLimits, {}).then(({ callLimits }) => setLimits(callLimits), notifyFailure);
  }, [direct]);
  return (
    <section aria-labelledby="call-limits" className="mt-10">
      <h2 id="call-limits" className="border-b border-line pb-3 text-lg font-semibold">
        {t("callRules.limitsOfCalls")}
      </h2>
      <p className="my-3 text-quiet">{t("callRules.limitsHint")}</p>
      {limits && <LimitsForm limits={limits} onSaved={setLimits} />}
    </section>
  );
}

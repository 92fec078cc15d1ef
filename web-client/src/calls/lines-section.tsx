/** The lines by which the calls of the organization are made, for the settings of the organization. */
import { useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import { type TelephonyLine, TelephonyLines } from "./operations";

export function TelephonyLinesSection() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [lines, setLines] = useState<readonly TelephonyLine[] | null>(null);
  useEffect(() => {
    request(direct, TelephonyLines, {}).then(({ telephonyLines }) => setLines(telephonyLines), notifyFailure);
  }, [direct]);
  return (
    <section aria-labelledby="telephony-lines" className="mt-10">
      <h2 id="telephony-lines" className="border-b border-line pb-3 text-lg font-semibold">
        {t("lines.title")}
      </h2>
      <p className="my-3 text-quiet">{t("lines.hint")}</p>
      {lines?.length === 0 && (
        <p className="rounded-card bg-wait-ground px-4 py-3 text-wait" data-testid="no-line">
          {t("lines.none")}
        </p>
      )}
      {lines && lines.length > 0 && (
        <ul className="flex flex-col gap-2">
          {lines.map((line) => (
            <LineRow key={line.id} line={line} />
          ))}
        </ul>
      )}
    </section>
  );
}

function LineRow({ line: { provider, callerNumber } }: { line: TelephonyLine }) {
  const { t } = useTranslation();
  return (
    <li data-line={provider} className="flex items-center gap-3 rounded-card border border-line p-3">
      <Icon name="phone" className="size-5 shrink-0 text-quiet" />
      <div className="min-w-0">
        <p className="font-medium">{t(`lines.provider.${provider}`)}</p>
        <p className="text-sm text-quiet">{t(`lines.provider.${provider}.hint`)}</p>
        {callerNumber && <p className="text-sm tabular-nums">{t("lines.from", { number: callerNumber })}</p>}
      </div>
    </li>
  );
}

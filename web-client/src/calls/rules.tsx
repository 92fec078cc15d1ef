/** The settings that apply to all jobs: the organization's call limits and the do-not-call list. */
import { hrefOf } from "../app/router";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { LoadingState } from "../ui/states";
import { useValue } from "../ui/value";
import { useCallStore } from "./call-store";
import { DoNotCallList } from "./do-not-call";
import { LimitsForm } from "./limits-form";

export function CallRules() {
  const { t } = useTranslation();
  const store = useCallStore();
  const limits = useValue(store.limits);
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto flex max-w-2xl flex-col gap-8 p-4 sm:p-6">
        <div className="flex items-center gap-2">
          <a
            href={hrefOf({ name: "calls" })}
            aria-label={t("back")}
            className="rounded-full p-2 text-quiet hover:bg-hover md:hidden"
          >
            <Icon name="back" />
          </a>
          <h1 className="text-xl font-semibold">{t("calls.rules")}</h1>
        </div>
        <section aria-labelledby="limits">
          <h2 id="limits" className="font-semibold">
            {t("callRules.limits")}
          </h2>
          <p className="mb-4 text-sm text-quiet">{t("callRules.limitsHint")}</p>
          {limits ? <LimitsForm limits={limits} onSaved={store.limits.set} /> : <LoadingState rows={2} />}
        </section>
        <DoNotCallList />
      </div>
    </div>
  );
}

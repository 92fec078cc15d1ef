/** The settings that apply to all jobs: the organization's call limits and the do-not-call list. */
import { type FormEvent, useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import { hrefOf } from "../app/router";
import { mayLimitCalls } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { LabelledField } from "../ui/labelled-field";
import { useTranslation } from "../ui/preferences";
import { LoadingState } from "../ui/states";
import { notify } from "../ui/toasts";
import { useValue } from "../ui/value";
import { useCallStore } from "./call-store";
import { DoNotCallList } from "./do-not-call";
import { type CallLimits, SetCallLimits } from "./operations";

export function Rules() {
  const { t } = useTranslation();
  const limits = useValue(useCallStore().limits);
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
          {limits ? <LimitsForm limits={limits} /> : <LoadingState rows={2} />}
        </section>
        <DoNotCallList />
      </div>
    </div>
  );
}

function LimitsForm({ limits }: { limits: CallLimits }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const store = useCallStore();
  const mayChange = mayLimitCalls(useViewer().roles);
  const [concurrent, setConcurrent] = useState(String(limits.concurrentCalls));
  const [perSecond, setPerSecond] = useState(String(limits.callsPerSecond));
  const [errorText, setErrorText] = useState<string | null>(null);
  // Shows limits that another administrator has changed.
  useEffect(() => {
    setConcurrent(String(limits.concurrentCalls));
    setPerSecond(String(limits.callsPerSecond));
  }, [limits.concurrentCalls, limits.callsPerSecond]);

  async function save(event: FormEvent) {
    event.preventDefault();
    const input = { concurrentCalls: Math.round(Number(concurrent)), callsPerSecond: Number(perSecond) };
    try {
      store.limits.set((await request(direct, SetCallLimits, { input })).setCallLimits);
      setErrorText(null);
      notify(t("callRules.saved"));
    } catch (error) {
      setErrorText(rejectionText(error) ?? t(failureTextKey(error)));
    }
  }

  const numberFieldProps = {
    type: "number",
    className: "field tabular-nums disabled:opacity-70",
    disabled: !mayChange,
  } as const;
  return (
    <form onSubmit={save} className="flex flex-wrap items-end gap-4">
      <LabelledField label={t("callRules.concurrent")} className="grow basis-40">
        {(props) => (
          <input
            {...props}
            {...numberFieldProps}
            min={0}
            max={1000}
            value={concurrent}
            onChange={(event) => setConcurrent(event.target.value)}
          />
        )}
      </LabelledField>
      <LabelledField label={t("callRules.perSecond")} className="grow basis-40">
        {(props) => (
          <input
            {...props}
            {...numberFieldProps}
            min={0.1}
            max={100}
            step={0.1}
            value={perSecond}
            onChange={(event) => setPerSecond(event.target.value)}
          />
        )}
      </LabelledField>
      {mayChange ? (
        <Button type="submit" kind="main" className="mb-0.5" disabled={concurrent === "" || perSecond === ""}>
          {t("save")}
        </Button>
      ) : (
        <p className="w-full text-sm text-quiet">{t("callRules.onlyAdmin")}</p>
      )}
      {errorText && (
        <p role="alert" className="w-full text-bad">
          {errorText}
        </p>
      )}
    </form>
  );
}

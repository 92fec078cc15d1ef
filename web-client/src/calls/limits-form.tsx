/** The form for the organization's call limits. Only administrators can change them. */
import { type FormEvent, useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import { mayLimitCalls } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { LabelledField } from "../ui/fields/labelled-field";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { type CallLimits, SetCallLimits } from "./operations";

interface Props {
  limits: CallLimits;
  onSaved: (limits: CallLimits) => void;
}

export function LimitsForm({ limits, onSaved }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
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
      onSaved((await request(direct, SetCallLimits, { input })).setCallLimits);
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

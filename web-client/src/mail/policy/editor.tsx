/**
 * The form that changes the mail policy. A changed policy is tried before it can be set. What a person has changed stays
 * when somebody else sets another version.
 */
import { type FormEvent, useState } from "react";
import { request, useApi } from "../../api/api";
import { errorCode, failureTextKey, rejectionText } from "../../api/failure";
import { Button } from "../../ui/button";
import { ReasonDialog } from "../../ui/dialogs/reason-dialog";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import { DryRunResult } from "./dry-run";
import { formOf, inputOf, isSamePolicy, type PolicyForm } from "./form";
import { type DryRun, type MailPolicy, SetPolicy, TryPolicy } from "./operations";
import { PolicyFields } from "./policy-fields";

interface Props {
  policy: MailPolicy;
  /** Loads the present policy again, after somebody else has set it. */
  load: () => Promise<void>;
  onSet: (policy: MailPolicy) => void;
}

export function PolicyEditor({ policy, load, onSet }: Props) {
  const { t } = useTranslation();
  // Null until the person changes something, so that the form shows the present policy.
  const [changedForm, setChangedForm] = useState<PolicyForm | null>(null);
  const form = changedForm ?? formOf(policy);
  const [isOvertaken, setIsOvertaken] = useState(false);
  const [isAsking, setIsAsking] = useState(false);
  const { dryRun, setDryRun, isBusy, errorText, attempt } = useAttempts();
  const { direct } = useApi();
  const input = inputOf(form);
  const isChanged = !isSamePolicy(form, formOf(policy));

  function change(changed: PolicyForm | null) {
    setChangedForm(changed);
    setDryRun(null);
    if (changed === null) setIsOvertaken(false);
  }

  async function handleOvertaken() {
    await load();
    setDryRun(null);
    setIsOvertaken(true);
  }

  function tryPolicy(event: FormEvent) {
    event.preventDefault();
    if (input === null || !isChanged) return;
    void attempt(async () => {
      const result = (await request(direct, TryPolicy, { policy: input })).mailPolicyDryRun;
      // A server may still compare with an older version, for up to five seconds.
      if (result.version > policy.version) return handleOvertaken();
      setIsOvertaken(false);
      setDryRun(result);
    });
  }

  function setPolicy(reason: string | null) {
    setIsAsking(false);
    if (reason === null || input === null) return;
    void attempt(async () => {
      try {
        const variables = { policy: input, afterVersion: policy.version, reason };
        const { setMailPolicy } = await request(direct, SetPolicy, variables);
        change(null);
        onSet(setMailPolicy);
        notify(t("policy.saved", { version: setMailPolicy.version }));
      } catch (error) {
        if (errorCode(error) !== "CONFLICT") throw error;
        await handleOvertaken();
      }
    });
  }

  return (
    <>
      <form onSubmit={tryPolicy} className="mt-4 flex flex-col gap-5" data-testid="policy-form">
        {isOvertaken && (
          <p role="alert" className="rounded-card bg-wait-ground px-4 py-3 text-wait">
            {t("policy.changed", { version: policy.version })}
          </p>
        )}
        <PolicyFields form={form} onChange={change} />
        {errorText && (
          <p role="alert" className="text-bad">
            {errorText}
          </p>
        )}
        <div className="flex flex-wrap items-center justify-end gap-2">
          {isChanged && !dryRun && <p className="grow text-sm text-quiet">{t("policy.tryFirst")}</p>}
          {changedForm && <Button onClick={() => change(null)}>{t("policy.reset")}</Button>}
          <Button
            type="submit"
            kind={dryRun ? "other" : "main"}
            isBusy={isBusy}
            disabled={!isChanged || !input}
          >
            {t("policy.try")}
          </Button>
          {dryRun && (
            <Button kind="main" isBusy={isBusy} onClick={() => setIsAsking(true)}>
              {t("policy.set")}
            </Button>
          )}
        </div>
        {dryRun && <DryRunResult dryRun={dryRun} />}
      </form>
      {isAsking && <AskReason onDone={setPolicy} />}
    </>
  );
}

function AskReason({ onDone }: { onDone: (reason: string | null) => void }) {
  const { t } = useTranslation();
  return (
    <ReasonDialog
      title={t("policy.setAction")}
      text={t("policy.setAsk")}
      action={t("policy.setAction")}
      onDone={onDone}
    />
  );
}

/** Runs one request at a time. The result of the last dry run stays until the form is changed. */
function useAttempts() {
  const { t } = useTranslation();
  const [dryRun, setDryRun] = useState<DryRun | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [errorText, setErrorText] = useState<string | null>(null);
  async function attempt(run: () => Promise<void>) {
    setIsBusy(true);
    setErrorText(null);
    try {
      await run();
    } catch (error) {
      setErrorText(rejectionText(error) ?? t(failureTextKey(error)));
    }
    setIsBusy(false);
  }
  return { dryRun, setDryRun, isBusy, errorText, attempt };
}

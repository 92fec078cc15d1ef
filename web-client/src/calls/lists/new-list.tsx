/** The form for a new call list. It shows errors while the user edits; launching starts the calls. */
import { type FormEvent, useState } from "react";
import { request, useApi } from "../../api/api";
import { LIMITS } from "../../api/limits";
import { hrefOf, navigate } from "../../app/router";
import { Button } from "../../ui/button";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useLength } from "../../ui/fields/length";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { notifyError } from "../../ui/toasts";
import { useCallStore } from "../call-store";
import { LaunchCallJob } from "../operations";
import { type CallListDraft, emptyDraft, isComplete, launchInput } from "./draft";
import { ListCheckResult, useListCheck } from "./list-check";
import { CallListInput } from "./list-input";
import { CallListOptions } from "./list-options";

export function NewCallListForm() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const store = useCallStore();
  const [draft, setDraft] = useState(emptyDraft);
  const [isBusy, setIsBusy] = useState(false);
  // The idempotency key stays until the list is changed or launched, so a retry never launches twice.
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID());
  const check = useListCheck(draft);
  const canLaunch = isComplete(draft) && check.result?.rowErrorCount === 0 && !check.isChecking && !isBusy;

  function change(part: Partial<CallListDraft>) {
    setDraft((current) => ({ ...current, ...part }));
    setIdempotencyKey(crypto.randomUUID());
  }

  async function launch(event: FormEvent) {
    event.preventDefault();
    if (!canLaunch) return;
    setIsBusy(true);
    try {
      const { job } = await request(direct, LaunchCallJob, {
        input: { ...launchInput(draft), idempotencyKey },
      });
      store.put(job);
      navigate({ name: "callJob", id: job.id });
    } catch (error) {
      notifyError(error);
      setIsBusy(false);
    }
  }

  return (
    <section aria-labelledby="new-list" className="thin-scroll h-full overflow-y-auto">
      <form
        onSubmit={launch}
        className="mx-auto flex min-h-full max-w-5xl flex-col gap-6 p-4 pb-0 sm:p-6 sm:pb-0"
      >
        <div className="flex items-center gap-2">
          <a
            href={hrefOf({ name: "calls" })}
            aria-label={t("back")}
            className="rounded-full p-2 text-quiet hover:bg-hover md:hidden"
          >
            <Icon name="back" />
          </a>
          <h1 id="new-list" className="text-xl font-semibold">
            {t("callList.title")}
          </h1>
        </div>
        <div className="grid gap-6 xl:grid-cols-[minmax(0,2fr)_minmax(0,3fr)]">
          <div className="flex min-w-0 flex-col gap-5">
            <CallListTextFields draft={draft} change={change} />
            <CallListInput csv={draft.csv} onChange={(csv) => change({ csv })} />
            <LabelledField label={t("callList.region")} hint={t("callList.regionHint")}>
              {(props) => (
                <input
                  {...props}
                  className="field w-20 uppercase"
                  autoComplete="off"
                  placeholder="JP"
                  value={draft.defaultRegion}
                  onChange={(event) => change({ defaultRegion: event.target.value })}
                />
              )}
            </LabelledField>
            <CallListOptions draft={draft} change={change} />
          </div>
          <div className="min-w-0">
            <ListCheckResult csv={draft.csv} check={check} />
          </div>
        </div>
        <div className="sticky bottom-0 -mx-4 mt-auto flex justify-end border-t border-line bg-paper px-4 py-3 sm:-mx-6 sm:px-6">
          <Button type="submit" kind="main" disabled={!canLaunch}>
            <Icon name="phone" className="size-4" />
            {t("callList.launch")}
          </Button>
        </div>
      </form>
    </section>
  );
}

function CallListTextFields({
  draft,
  change,
}: {
  draft: CallListDraft;
  change: (part: Partial<CallListDraft>) => void;
}) {
  const { t } = useTranslation();
  const name = useLength(draft.name, LIMITS.callJobName);
  const scenario = useLength(draft.scenario, LIMITS.scenario);
  return (
    <>
      <LabelledField label={t("callList.name")} length={name}>
        {(props) => (
          <input
            {...props}
            className="field"
            placeholder={t("callList.namePlaceholder")}
            value={draft.name}
            onChange={(event) => change({ name: event.target.value })}
          />
        )}
      </LabelledField>
      <LabelledField label={t("callList.scenario")} hint={t("callList.scenarioHint")} length={scenario}>
        {(props) => (
          <textarea
            {...props}
            className="field field-sizing-content max-h-60 min-h-20"
            value={draft.scenario}
            onChange={(event) => change({ scenario: event.target.value })}
          />
        )}
      </LabelledField>
    </>
  );
}

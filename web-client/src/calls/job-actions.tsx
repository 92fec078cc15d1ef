/** Pausing, resuming and cancelling a job. */
import { useState } from "react";
import { ask, useApi } from "../api/api";
import { Confirm } from "../chat/confirm";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { useWords } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { useCallStore } from "./call-store";
import { type CallJob, CancelCallJob, PauseCallJob, ResumeCallJob } from "./operations";
import { isOpen } from "./state-styles";

export function JobActions({ job }: { job: CallJob }) {
  const { t } = useWords();
  const { direct } = useApi();
  const store = useCallStore();
  const [busy, setBusy] = useState(false);
  const [isConfirming, setIsConfirming] = useState(false);
  if (!isOpen(job)) return null;
  const paused = job.state === "PAUSED";

  async function act(mutation: typeof PauseCallJob | typeof ResumeCallJob | typeof CancelCallJob) {
    setBusy(true);
    try {
      const { job: now } = await ask(direct, mutation as typeof PauseCallJob, { id: job.id });
      store.put(now);
      if (now.state === "PAUSED") notify(t("callJob.paused"));
    } catch (error) {
      notifyFailure(error);
    }
    setBusy(false);
  }

  return (
    <div className="flex flex-wrap gap-2">
      <Button
        kind={paused ? "main" : "other"}
        disabled={busy}
        onClick={() => act(paused ? ResumeCallJob : PauseCallJob)}
      >
        <Icon name={paused ? "play" : "pause"} className="size-4" />
        {t(paused ? "callJob.resume" : "callJob.pause")}
      </Button>
      <Button disabled={busy} onClick={() => setIsConfirming(true)}>
        <Icon name="stop" className="size-4" />
        {t("callJob.cancel")}
      </Button>
      {isConfirming && (
        <Confirm
          title={t("callJob.cancel")}
          text={t("callJob.cancelAsk")}
          action={t("callJob.cancel")}
          keep={t("callJob.keep")}
          onDone={(sure) => {
            setIsConfirming(false);
            if (sure) void act(CancelCallJob);
          }}
        />
      )}
    </div>
  );
}

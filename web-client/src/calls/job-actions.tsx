/** The buttons that pause, resume and cancel a job. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { useCallStore } from "./call-store";
import { type CallJob, CancelCallJob, PauseCallJob, ResumeCallJob } from "./operations";
import { isUnfinished } from "./state-styles";

export function JobActions({ job }: { job: CallJob }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const store = useCallStore();
  const [isBusy, setIsBusy] = useState(false);
  const [isConfirming, setIsConfirming] = useState(false);
  if (!isUnfinished(job)) return null;
  const isPaused = job.state === "PAUSED";

  async function act(mutation: typeof PauseCallJob | typeof ResumeCallJob | typeof CancelCallJob) {
    setIsBusy(true);
    try {
      const { job: changedJob } = await request(direct, mutation as typeof PauseCallJob, { id: job.id });
      store.put(changedJob);
      if (changedJob.state === "PAUSED") notify(t("callJob.paused"));
    } catch (error) {
      notifyFailure(error);
    }
    setIsBusy(false);
  }

  return (
    <div className="flex flex-wrap gap-2">
      <Button
        kind={isPaused ? "main" : "other"}
        isBusy={isBusy}
        onClick={() => act(isPaused ? ResumeCallJob : PauseCallJob)}
      >
        <Icon name={isPaused ? "play" : "pause"} className="size-4" />
        {t(isPaused ? "callJob.resume" : "callJob.pause")}
      </Button>
      <Button isBusy={isBusy} onClick={() => setIsConfirming(true)}>
        <Icon name="stop" className="size-4" />
        {t("callJob.cancel")}
      </Button>
      {isConfirming && (
        <ConfirmDialog
          title={t("callJob.cancel")}
          text={t("callJob.cancelAsk")}
          action={t("callJob.cancel")}
          keepLabel={t("callJob.keep")}
          onDone={(isConfirmed) => {
            setIsConfirming(false);
            if (isConfirmed) void act(CancelCallJob);
          }}
        />
      )}
    </div>
  );
}

/**
 * The dialog that moves a post to another time. It opens by keyboard, by a button of the post's dialog, and after a
 * drag onto an ambiguous or past time.
 */
import { useState } from "react";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialogs/dialog";
import { useTranslation } from "../../ui/preferences";
import type { ScheduledPost } from "../operations";
import { type DueTime, isComplete, isTooLate } from "../posts/due-time";
import { DueTimeFields } from "../posts/due-time-fields";
import { FormError, useSubmission } from "../posts/form-error";
import type { TimeReadings } from "../posts/rejections";

interface Props {
  post: ScheduledPost;
  initialTime: DueTime;
  /** Both readings, if the post was dropped on an ambiguous time; null otherwise. */
  readings: TimeReadings | null;
  movePost: (post: ScheduledPost, dueTime: DueTime) => Promise<void>;
  onClose: () => void;
}

export function MovePostDialog({ post, initialTime, readings: offeredReadings, movePost, onClose }: Props) {
  const { t } = useTranslation();
  const submission = useSubmission();
  const [dueTime, setDueTime] = useState(initialTime);
  const [initialReadings, setInitialReadings] = useState(offeredReadings);
  const readings = submission.readings ?? initialReadings;
  const isAmbiguous = readings !== null && dueTime.reading === null;
  const isPossible = isComplete(dueTime) && !isTooLate(dueTime, post.maxLatenessS) && !isAmbiguous;
  const isReady = isPossible && !submission.isBusy;

  function change(next: DueTime) {
    if (next.reading === null) {
      setInitialReadings(null);
      submission.clearError();
    }
    setDueTime(next);
  }

  async function submit() {
    if (await submission.run(() => movePost(post, dueTime))) onClose();
  }

  return (
    <Dialog title={t("publishing.move")} onClose={onClose}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) void submit();
        }}
      >
        <p className="line-clamp-3 border-l-3 border-accent pl-3 text-quiet">
          {post.text || t("publishing.onlyMedia")}
        </p>
        <DueTimeFields
          value={dueTime}
          onChange={change}
          readings={readings}
          maxLatenessS={post.maxLatenessS}
        />
        <FormError {...submission} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("cancel")}</Button>
          <Button type="submit" kind="main" disabled={!isReady}>
            {t("publishing.move")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

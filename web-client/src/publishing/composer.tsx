/** The form for a scheduled post: text, media, targets and time. */
import { useEffect, useRef, useState } from "react";
import { request, useApi } from "../api/api";
import { LIMITS } from "../api/limits";
import { useDraft } from "../session/drafts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { useLength } from "../ui/length";
import { MentionField } from "../ui/mentions";
import { useTranslation } from "../ui/preferences";
import { excessOf } from "../ui/text-length";
import { notify } from "../ui/toasts";
import { type DueTime, dueAtOf, isComplete, isTooLate } from "./due-time";
import { DueTimeFields } from "./due-time-fields";
import { FormError, useSubmission } from "./form-error";
import { instantText, roundedDuration } from "./local-times";
import { MediaRows, type Medium } from "./media-rows";
import { type ScheduledPost, SchedulePost, UpdatePost } from "./operations";
import { TargetBoxes, type TargetIds, targetsOf } from "./targets";

const MAX_LATENESS_CHOICES_S = [60, 900, 3_600, 21_600, 86_400, 604_800] as const;

export interface Draft {
  text: string;
  media: readonly Medium[];
  targets: TargetIds;
  dueTime: DueTime;
  maxLatenessS: number;
}

export function emptyDraft(dueTime: DueTime): Draft {
  const targets = { toHomeFeed: true, toTopicIds: [], toAccountIds: [] };
  return { text: "", media: [], targets, dueTime, maxLatenessS: 3_600 };
}

export function draftOf(post: ScheduledPost, dueTime: DueTime): Draft {
  const targets = targetsOf(post.publications.map(({ target }) => target));
  return { text: post.text, media: post.media, targets, dueTime, maxLatenessS: post.maxLatenessS };
}

/** A draft with its idempotency key. The key stays until a change, so a retry never schedules twice. */
interface KeptDraft {
  content: Draft;
  idempotencyKey: string;
}

function isKeptDraft(value: unknown): value is KeptDraft {
  const { content, idempotencyKey } = Object(value);
  const { text, media, targets, dueTime, maxLatenessS } = Object(content);
  const { toTopicIds, toAccountIds } = Object(targets);
  const hasLists = [media, toTopicIds, toAccountIds].every(Array.isArray);
  const hasTexts = [text, Object(dueTime).local, Object(dueTime).zone, idempotencyKey].every(
    (each) => typeof each === "string",
  );
  return hasLists && hasTexts && typeof maxLatenessS === "number";
}

interface Props {
  /** The draft of a composer that was never used. */
  draft: Draft;
  /** The name under which changes are kept. */
  draftName: string;
  /** The post being edited; null for a new one. */
  post: ScheduledPost | null;
  onDone: (post: ScheduledPost) => void;
  onClose: () => void;
  openAccounts: () => void;
}

export function ScheduledPostComposer(props: Props) {
  const { draft: initialDraft, draftName, post, onDone, onClose, openAccounts } = props;
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const submission = useSubmission();
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const [unused] = useState(() => ({ content: initialDraft, idempotencyKey: crypto.randomUUID() }));
  const kept = useDraft<KeptDraft>(`scheduled post ${draftName}`, unused, isKeptDraft);
  const { content: draft, idempotencyKey } = kept.draft;
  const { targets } = draft;
  const length = useLength(draft.text, LIMITS.scheduledPost);
  const hasTarget = targets.toHomeFeed || targets.toTopicIds.length > 0 || targets.toAccountIds.length > 0;
  const hasContent = draft.text.trim() !== "" || draft.media.length > 0;
  const isAmbiguous = submission.readings !== null && draft.dueTime.reading === null;
  const isTooLong =
    length.isTooLong || draft.media.some(({ altText }) => excessOf(altText, LIMITS.altText) > 0);
  const hasTime = isComplete(draft.dueTime) && !isTooLate(draft.dueTime, draft.maxLatenessS) && !isAmbiguous;
  const isReady = hasContent && !isTooLong && hasTarget && hasTime && !submission.busy;

  function change(part: Partial<Draft>) {
    kept.setDraft({ content: { ...draft, ...part }, idempotencyKey: crypto.randomUUID() });
  }

  async function send() {
    const { dueTime, text, media, maxLatenessS } = draft;
    const content = {
      text: text.trim(),
      media: media.map(({ url, altText, kind }) => ({ url, altText, kind })),
    };
    const input = {
      ...content,
      ...targetInput(targets),
      dueAt: dueAtOf(dueTime),
      timeZone: dueTime.zone,
      maxLatenessS,
    };
    const savedPost = post
      ? (await request(direct, UpdatePost, { id: post.id, input: { ...input, revision: post.revision } }))
          .updateScheduledPost
      : (await request(direct, SchedulePost, { input: { ...input, idempotencyKey } })).schedulePost;
    notify(
      t("publishing.scheduled", { time: instantText(language, dueTime.zone, new Date(savedPost.dueAt)) }),
    );
    kept.discardDraft();
    onDone(savedPost);
  }

  function close() {
    if (kept.isKept) notify(t("publishing.draftKept"));
    onClose();
  }

  function discard() {
    kept.discardDraft();
    onClose();
  }

  return (
    <Dialog title={t(post ? "publishing.edit" : "publishing.new")} onClose={close}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) void submission.run(send);
        }}
      >
        {kept.isRestored && (
          <p className="rounded-card bg-well px-3 py-2 text-sm text-quiet">{t("publishing.draftRestored")}</p>
        )}
        <MentionField
          ref={field}
          rows={4}
          className="field field-sizing-content block max-h-72 min-h-28 w-full resize-none"
          aria-label={t("publishing.text")}
          placeholder={t("publishing.text")}
          value={draft.text}
          onText={(text) => change({ text })}
          {...length.fieldProps}
        />
        {length.note}
        <MediaRows value={draft.media} onChange={(media) => change({ media })} />
        <DueTimeFields
          value={draft.dueTime}
          onChange={(dueTime) => {
            if (dueTime.reading === null) submission.clearError();
            change({ dueTime });
          }}
          readings={submission.readings}
          maxLatenessS={draft.maxLatenessS}
        />
        <TargetBoxes
          value={targets}
          onChange={(targets) => change({ targets })}
          openAccounts={openAccounts}
        />
        <MaxLatenessSelect value={draft.maxLatenessS} onChange={(maxLatenessS) => change({ maxLatenessS })} />
        <FormError {...submission} />
        <div className="flex justify-end gap-2">
          <Button onClick={discard}>{t(kept.isKept ? "publishing.draftDiscard" : "cancel")}</Button>
          <Button type="submit" kind="main" disabled={!isReady}>
            {t(post ? "save" : "publishing.schedule")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function targetInput({ toHomeFeed, toTopicIds, toAccountIds }: TargetIds) {
  return { toHomeFeed, toTopicIds: [...toTopicIds], toAccountIds: [...toAccountIds] };
}

function MaxLatenessSelect({ value, onChange }: { value: number; onChange: (seconds: number) => void }) {
  const { t } = useTranslation();
  const choices = [...new Set([...MAX_LATENESS_CHOICES_S, value])].sort((a, b) => a - b);
  return (
    <label className="flex flex-col gap-1">
      <span className="text-sm font-medium">{t("publishing.lateness")}</span>
      <select className="field" value={value} onChange={(event) => onChange(Number(event.target.value))}>
        {choices.map((seconds) => (
          <option key={seconds} value={seconds}>
            {roundedDuration(seconds, t)}
          </option>
        ))}
      </select>
    </label>
  );
}

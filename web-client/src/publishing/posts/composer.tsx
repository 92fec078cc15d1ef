/** The form for a scheduled post: text, files, media, targets and time. */
import { useEffect, useRef, useState } from "react";
import { request, useApi } from "../../api/api";
import type { VariablesOf } from "../../api/graphql";
import { LIMITS } from "../../api/limits";
import { EmojiButton } from "../../emoji/emoji-button";
import { attachedFile } from "../../files/composed-file";
import { ComposedFileList } from "../../files/composed-list";
import { FilePicker } from "../../files/file-picker";
import type { Attachment } from "../../files/operations";
import { useComposedFiles } from "../../files/use-composed-files";
import { useDraft } from "../../session/drafts";
import { Button, IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialogs/dialog";
import { insertText } from "../../ui/fields/insert-text";
import { useLength } from "../../ui/fields/length";
import { MentionField } from "../../ui/fields/mentions";
import { excessOf } from "../../ui/fields/text-length";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import { instantText, roundedDuration } from "../local-times";
import {
  type DetailedPost,
  type ScheduledPost,
  SchedulePost,
  SchedulePostAtLocalTime,
  UpdatePost,
} from "../operations";
import { type DueTime, dueInput, isComplete, isTooLate } from "./due-time";
import { DueTimeFields } from "./due-time-fields";
import { FormError, useSubmission } from "./form-error";
import { LibraryPanel } from "./library";
import { MediaRows, type ScheduledMedium } from "./media-rows";
import { TargetCheckboxes, type TargetIds, targetsOf } from "./targets";

/** The input of a post, except for its time. */
type PostContent = Omit<VariablesOf<typeof SchedulePost>["input"], "dueAt" | "timeZone" | "idempotencyKey">;

const MAX_LATENESS_CHOICES_S = [60, 900, 3_600, 21_600, 86_400, 604_800] as const;

export interface ScheduledPostDraft {
  text: string;
  media: readonly ScheduledMedium[];
  targets: TargetIds;
  dueTime: DueTime;
  maxLatenessS: number;
}

export function emptyDraft(dueTime: DueTime): ScheduledPostDraft {
  const targets = { toHomeFeed: true, toTopicIds: [], toAccountIds: [] };
  return { text: "", media: [], targets, dueTime, maxLatenessS: 3_600 };
}

export function draftOf(post: ScheduledPost, dueTime: DueTime): ScheduledPostDraft {
  const targets = targetsOf(post.publications.map(({ target }) => target));
  return { text: post.text, media: post.media, targets, dueTime, maxLatenessS: post.maxLatenessS };
}

/** A draft with its idempotency key. The key stays until a change, so a retry never schedules twice. */
interface StoredDraft {
  content: ScheduledPostDraft;
  idempotencyKey: string;
}

function isStoredDraft(value: unknown): value is StoredDraft {
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
  /** The draft with which the composer starts if no changes are kept. */
  draft: ScheduledPostDraft;
  /** The name under which changes are kept. */
  draftName: string;
  /** The post being edited; null for a new post. */
  post: DetailedPost | null;
  /** The files of a post that is copied, which are in the viewer's library. */
  copiedFiles?: readonly Attachment[] | undefined;
  /** Names of the files of a copied post that can't be used again. */
  missingFiles?: readonly string[] | undefined;
  onDone: (post: ScheduledPost) => void;
  onClose: () => void;
  openAccounts: () => void;
}

export function ScheduledPostComposer(props: Props) {
  const { draft: initialDraft, draftName, post, onDone, onClose, openAccounts } = props;
  const { copiedFiles = [], missingFiles = [] } = props;
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const submission = useSubmission();
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const [unused] = useState(() => ({ content: initialDraft, idempotencyKey: crypto.randomUUID() }));
  const kept = useDraft<StoredDraft>(`scheduled post ${draftName}`, unused, isStoredDraft);
  const initialFiles = (post?.attachments ?? copiedFiles).map(attachedFile);
  const composed = useComposedFiles(`scheduled post ${draftName}`, initialFiles);
  const [isRestored] = useState(kept.isRestored || composed.isKept);
  const [isLibraryOpen, setIsLibraryOpen] = useState(false);
  const { content: draft } = kept.draft;
  const { targets } = draft;
  const length = useLength(draft.text, LIMITS.scheduledPost);
  const hasTarget = targets.toHomeFeed || targets.toTopicIds.length > 0 || targets.toAccountIds.length > 0;
  const hasFiles = composed.files.length > 0;
  const hasContent = draft.text.trim() !== "" || draft.media.length > 0 || hasFiles;
  const areFilesReady = composed.ready !== null;
  const isAmbiguous = submission.readings !== null && draft.dueTime.reading === null;
  const isTooLong =
    length.isTooLong || draft.media.some(({ altText }) => excessOf(altText, LIMITS.altText) > 0);
  const hasTime = isComplete(draft.dueTime) && !isTooLate(draft.dueTime, draft.maxLatenessS) && !isAmbiguous;
  const isReady = hasContent && !isTooLong && areFilesReady && hasTarget && hasTime && !submission.isBusy;
  const hasDraft = kept.isKept || composed.isKept;

  function change(part: Partial<ScheduledPostDraft>) {
    kept.setDraft({ content: { ...draft, ...part }, idempotencyKey: crypto.randomUUID() });
  }

  async function send() {
    const { dueTime, text, media, maxLatenessS } = draft;
    const content = {
      text: text.trim(),
      media: media.map(({ url, altText, kind }) => ({ url, altText, kind })),
      attachments: (composed.ready ?? []).map(({ uploadId, altText }) => ({ uploadId, altText })),
    };
    const savedPost = await save({ ...content, ...targetInput(targets), maxLatenessS }, dueTime);
    notify(
      t("publishing.scheduled", { time: instantText(language, dueTime.zone, new Date(savedPost.dueAt)) }),
    );
    kept.discardDraft();
    composed.clear();
    onDone(savedPost);
  }

  /** Updates the post, or schedules a new one: for the chosen instant, or for the local time. */
  async function save(content: PostContent, dueTime: DueTime): Promise<ScheduledPost> {
    if (post) {
      const input = { ...content, ...dueInput(dueTime), revision: post.revision };
      return (await request(direct, UpdatePost, { id: post.id, input })).updateScheduledPost;
    }
    const { local, zone: timeZone, reading } = dueTime;
    const input = {
      ...content,
      timeZone,
      idempotencyKey: composed.idempotencyKey(kept.draft.idempotencyKey),
    };
    if (reading)
      return (await request(direct, SchedulePost, { input: { ...input, dueAt: reading } })).schedulePost;
    return (await request(direct, SchedulePostAtLocalTime, { input: { ...input, dueAtLocal: local } }))
      .schedulePostAtLocalTime;
  }

  function close() {
    if (hasDraft) notify(t("publishing.draftKept"));
    onClose();
  }

  function discard() {
    kept.discardDraft();
    composed.discard();
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
        {...composed.dropProps}
      >
        {isRestored && (
          <p className="rounded-card bg-well px-3 py-2 text-sm text-quiet">{t("publishing.draftRestored")}</p>
        )}
        {missingFiles.length > 0 && (
          <p role="status" className="rounded-card bg-wait-ground px-3 py-2 text-sm text-wait">
            {t("publishing.filesMissing", { names: missingFiles.join(", ") })}
          </p>
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
        <div className="-mt-3 flex gap-1">
          <EmojiButton label={t("emoji.insert")} onPick={(emoji) => insertText(field.current, emoji)} />
          <FilePicker onPick={composed.add} />
          <IconButton
            icon="box"
            label={t("publishing.library")}
            aria-expanded={isLibraryOpen}
            onClick={() => setIsLibraryOpen(!isLibraryOpen)}
          />
        </div>
        {isLibraryOpen && <LibraryPanel composed={composed} />}
        <ComposedFileList composed={composed} />
        {draft.media.length > 0 && <MediaRows value={draft.media} onChange={(media) => change({ media })} />}
        <DueTimeFields
          value={draft.dueTime}
          onChange={(dueTime) => {
            if (dueTime.reading === null) submission.clearError();
            change({ dueTime });
          }}
          readings={submission.readings}
          maxLatenessS={draft.maxLatenessS}
        />
        <TargetCheckboxes
          value={targets}
          onChange={(targets) => change({ targets })}
          openAccounts={openAccounts}
        />
        <MaxLatenessSelect value={draft.maxLatenessS} onChange={(maxLatenessS) => change({ maxLatenessS })} />
        <FormError {...submission} />
        <div className="flex justify-end gap-2">
          <Button onClick={discard}>{t(hasDraft ? "publishing.draftDiscard" : "cancel")}</Button>
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

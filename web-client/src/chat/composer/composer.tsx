/** The message field: text with mentions and files, or a stamp. */
import { type KeyboardEvent, type RefObject, useEffect, useState } from "react";
import { useApi } from "../../api/api";
import { LIMITS } from "../../api/limits";
import { EmojiButton } from "../../emoji/emoji-button";
import { ComposedFileList } from "../../files/composed-list";
import { FilePicker } from "../../files/file-picker";
import { useComposedFiles } from "../../files/use-composed-files";
import { timeOrDate } from "../../i18n/times";
import { useTypingSignal } from "../../presence/typing-signal";
import { isText, useDraft } from "../../session/drafts";
import { IconButton } from "../../ui/button";
import { Popover } from "../../ui/dialogs/popover";
import { FormattingHelp } from "../../ui/fields/formatting-help";
import { insertText, removeText } from "../../ui/fields/insert-text";
import { useLength } from "../../ui/fields/length";
import { MentionField } from "../../ui/fields/mentions";
import { Icon, type IconName } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import type { QuotedMessage, Stamp } from "../operations";
import { ComposedQuote } from "../quotes/composed-quote";
import { useOutbox } from "./outbox";
import { durationText, useSecondsUntil } from "./slow-mode";
import { StampGrid } from "./stamp-grid";

/** The longest time for which a timer can wait. */
const TIMER_MAX_MS = 2 ** 31 - 1;

const isChoice = (value: unknown): value is boolean => typeof value === "boolean";

interface Props {
  topicId: string;
  topicTitle: string;
  /** Id of the message whose thread the message starts; absent for a message to the topic itself. */
  replyTo?: string;
  /** Id of the parent message of a thread that exists; null for other topics. */
  parentId?: string | null;
  /** The message that the viewer quotes; absent without a quote. */
  quoted?: QuotedMessage | null;
  /** Called when the viewer has pasted the address of a message, which the field then quotes. */
  onQuote?: (message: QuotedMessage) => void;
  /** Called when the quote was sent or removed. */
  onQuoteEnd?: () => void;
  /** Label of the field; by default with the title of the topic. */
  label?: string | undefined;
  communityId: string;
  /** Whether a message of a thread is in a conversation. */
  isInConversation?: boolean;
  /** When the viewer may write again; null if the viewer is not muted. */
  mutedUntil: string | null;
  /** Which of the two is archived, so that nobody can write: the community if both are; null if neither is. */
  archived: "topic" | "community" | null;
  /** When slow mode lets the viewer write again, in milliseconds since the Unix epoch; 0 if at once. */
  nextAt: number;
  field: RefObject<HTMLTextAreaElement | null>;
  onSent: () => void;
  /** Called for ArrowUp in an empty field. */
  onEditLast: () => void;
}

export function MessageComposer({ mutedUntil, archived, ...props }: Props) {
  const { t, language } = useTranslation();
  const hasEnded = useHasPassed(mutedUntil);
  if (archived)
    return <CannotWriteNotice icon="box" testId="archived" text={t(`composer.archived.${archived}`)} />;
  if (mutedUntil === null || hasEnded) return <MessageForm {...props} />;
  const until = timeOrDate(language, new Date(mutedUntil), new Date());
  return <CannotWriteNotice icon="clock" testId="muted" text={t("composer.muted", { until })} />;
}

/** Returns whether an instant has passed, and renders the component again when it passes. */
function useHasPassed(instant: string | null): boolean {
  const [, setPassed] = useState<string | null>(null);
  const left_ms = instant === null ? 0 : new Date(instant).getTime() - Date.now();
  useEffect(() => {
    if (left_ms <= 0) return;
    const timer = setTimeout(() => setPassed(instant), Math.min(left_ms, TIMER_MAX_MS));
    return () => clearTimeout(timer);
  }, [instant, left_ms]);
  return left_ms <= 0;
}

/** Replaces the message field of a viewer who may not write. A draft stays. */
function CannotWriteNotice({ icon, testId, text }: { icon: IconName; testId: string; text: string }) {
  return (
    <p
      role="status"
      data-testid={testId}
      className="mx-auto mb-3 flex w-[min(100%-1.5rem,62rem)] items-center gap-3 rounded-card bg-wait-ground px-4 py-3 text-wait"
    >
      <Icon name={icon} />
      <span>{text}</span>
    </p>
  );
}

function MessageForm({
  topicId,
  topicTitle,
  replyTo,
  parentId,
  quoted = null,
  onQuote,
  onQuoteEnd,
  label: ownLabel,
  communityId,
  isInConversation = false,
  field,
  onSent,
  onEditLast,
  nextAt,
}: Omit<Props, "mutedUntil" | "archived">) {
  const { t, language } = useTranslation();
  const secondsLeft = useSecondsUntil(nextAt);
  const outbox = useOutbox();
  const api = useApi();
  const label = ownLabel ?? t("composer.label", { topic: topicTitle });
  // A draft of the first reply stays when somebody else starts the thread.
  const draftName = `topic ${replyTo ?? parentId ?? topicId}`;
  const { draft: text, setDraft: setText } = useDraft(draftName, "", isText);
  const isReply = Boolean(replyTo ?? parentId);
  const choice = useDraft(`${draftName} also`, false, isChoice);
  const typing = useTypingSignal(topicId);
  const length = useLength(text, LIMITS.message);
  const composed = useComposedFiles(draftName);
  const hasContent = text.trim() !== "" || composed.files.length > 0;
  const canSend = hasContent && composed.sendable !== null && !length.isTooLong && secondsLeft === 0;

  function send(stamp: Stamp | null = null) {
    if (secondsLeft > 0 || (!stamp && !canSend)) return;
    const references = { replyTo, quoted: quoted ?? undefined, alsoToTopic: choice.draft || undefined };
    if (stamp) outbox.send(topicId, "", stamp, [], references);
    else {
      outbox.send(topicId, text.trim(), null, composed.sendable ?? [], references);
      setText("");
      composed.clear();
    }
    choice.discardDraft();
    if (quoted) onQuoteEnd?.();
    typing.stop();
    onSent();
  }

  function changeText(changed: string) {
    setText(changed);
    // A first reply is written in a thread that does not exist yet, and not in the topic.
    if (!replyTo) typing.update(changed);
  }

  /** Makes the message whose address alone was pasted the quoted one. Until it is found, the address is text. */
  async function quotePasted(pasted: string) {
    if (quoted || !pasted.startsWith(location.origin)) return;
    const { findLinkedMessage, messageAddress } = await import("../quotes/linked-message");
    const address = messageAddress(pasted, location.href);
    const message = address && (await findLinkedMessage(api, address));
    if (message && field.current && removeText(field.current, pasted)) onQuote?.(message);
  }

  function handleKey(event: KeyboardEvent) {
    if (event.key !== "ArrowUp" || text) return;
    event.preventDefault();
    onEditLast();
  }

  return (
    <form
      className="@container mx-auto mb-3 w-[min(100%-1.5rem,62rem)]"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      {...composed.dropProps}
    >
      {secondsLeft > 0 && (
        <p data-testid="slow-mode" className="mb-1 flex items-center gap-1.5 px-2 text-sm text-quiet">
          <Icon name="clock" className="size-4" />
          {t("slowMode.left", { duration: durationText(language, secondsLeft) })}
        </p>
      )}
      {length.note}
      {quoted && <ComposedQuote message={quoted} onRemove={() => onQuoteEnd?.()} />}
      <ComposedFileList composed={composed} />
      <div className="flex flex-wrap items-end gap-1 rounded-card border border-quiet bg-raised p-1.5 focus-within:border-accent @md:flex-nowrap">
        <StampPicker onPick={send} />
        <EmojiButton label={t("emoji.insert")} onPick={(emoji) => insertText(field.current, emoji)} />
        <FilePicker onPick={composed.add} />
        <FormattingHelp />
        {/* In a narrow column, the field has a line of its own above the buttons. */}
        <div className="min-w-0 grow @max-md:order-first @max-md:basis-full">
          <MentionField
            ref={field}
            rows={1}
            className="thin-scroll block field-sizing-content max-h-48 w-full resize-none bg-transparent px-1 py-1.5 outline-none placeholder:truncate"
            aria-label={label}
            placeholder={label}
            value={text}
            onText={changeText}
            onEnter={send}
            onKeyDown={handleKey}
            onPaste={({ clipboardData }) => void quotePasted(clipboardData.getData("text").trim())}
            communityId={communityId}
            {...length.fieldProps}
          />
        </div>
        <IconButton
          icon="send"
          label={t("composer.send")}
          type="submit"
          disabled={!canSend}
          className="enabled:bg-accent enabled:text-on-accent @max-md:ml-auto"
        />
      </div>
      {isReply && (
        <label className="mt-1 flex min-h-8 w-fit items-center gap-2 px-2 text-sm text-quiet">
          <input
            type="checkbox"
            className="size-4 accent-accent"
            checked={choice.draft}
            onChange={({ target }) => (target.checked ? choice.setDraft(true) : choice.discardDraft())}
          />
          {t(isInConversation ? "thread.alsoToConversation" : "thread.alsoToTopic")}
        </label>
      )}
    </form>
  );
}

function StampPicker({ onPick }: { onPick: (stamp: Stamp) => void }) {
  const { t } = useTranslation();
  return (
    <Popover
      label={t("composer.stamps")}
      trigger={(props) => <IconButton icon="stamp" label={t("composer.stamps")} {...props} />}
    >
      {(close) => (
        <StampGrid
          onPick={(stamp) => {
            close();
            onPick(stamp);
          }}
        />
      )}
    </Popover>
  );
}

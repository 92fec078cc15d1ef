/** The message field: text with mentions, or a stamp. */
import { type KeyboardEvent, type Ref, useEffect, useState } from "react";
import { useQuery } from "urql";
import { LIMITS } from "../api/limits";
import { timeOrDate } from "../i18n/times";
import { isText, useDraft } from "../session/drafts";
import { IconButton } from "../ui/button";
import { Icon } from "../ui/icons";
import { useLength } from "../ui/length";
import { MentionField } from "../ui/mentions";
import { Popover } from "../ui/popover";
import { useTranslation } from "../ui/preferences";
import { type Stamp, Stamps } from "./operations";
import { useOutbox } from "./outbox";

/** A timer can't wait longer. */
const TIMER_MAX_MS = 2 ** 31 - 1;

interface Props {
  topicId: string;
  topicTitle: string;
  communityId: string;
  /** When the viewer may write again; null if the viewer is not muted. */
  mutedUntil: string | null;
  field: Ref<HTMLTextAreaElement>;
  onSent: () => void;
  /** Called for ArrowUp in an empty field. */
  onEditLast: () => void;
}

export function Composer({ mutedUntil, ...props }: Props) {
  const hasEnded = useHasPassed(mutedUntil);
  return mutedUntil !== null && !hasEnded ? <MutedNote until={mutedUntil} /> : <MessageForm {...props} />;
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

/** Replaces the message field of a muted viewer. A draft stays. */
function MutedNote({ until }: { until: string }) {
  const { t, language } = useTranslation();
  return (
    <p
      role="status"
      data-testid="muted"
      className="mx-auto mb-3 flex w-[min(100%-1.5rem,62rem)] items-center gap-3 rounded-card bg-wait-ground px-4 py-3 text-wait"
    >
      <Icon name="clock" />
      <span>{t("composer.muted", { until: timeOrDate(language, new Date(until), new Date()) })}</span>
    </p>
  );
}

function MessageForm({
  topicId,
  topicTitle,
  communityId,
  field,
  onSent,
  onEditLast,
}: Omit<Props, "mutedUntil">) {
  const { t } = useTranslation();
  const outbox = useOutbox();
  const { draft: text, setDraft: setText } = useDraft(`topic ${topicId}`, "", isText);
  const length = useLength(text, LIMITS.message);
  const canSend = text.trim() !== "" && !length.isTooLong;

  function send(stamp: Stamp | null = null) {
    if (!stamp && !canSend) return;
    outbox.send(topicId, stamp ? "" : text.trim(), stamp);
    if (!stamp) setText("");
    onSent();
  }

  function handleKey(event: KeyboardEvent) {
    if (event.key !== "ArrowUp" || text) return;
    event.preventDefault();
    onEditLast();
  }

  return (
    <form
      className="mx-auto mb-3 w-[min(100%-1.5rem,62rem)]"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {length.note}
      <div className="flex items-end gap-1 rounded-card border border-quiet bg-raised p-1.5 focus-within:border-accent">
        <StampPicker onPick={send} />
        <MentionField
          ref={field}
          rows={1}
          className="thin-scroll block field-sizing-content max-h-48 w-full resize-none bg-transparent px-1 py-1.5 outline-none"
          aria-label={t("composer.label", { topic: topicTitle })}
          placeholder={t("composer.label", { topic: topicTitle })}
          value={text}
          onText={setText}
          onEnter={send}
          onKeyDown={handleKey}
          communityId={communityId}
          {...length.fieldProps}
        />
        <IconButton
          icon="send"
          label={t("composer.send")}
          type="submit"
          disabled={!canSend}
          className="enabled:bg-accent enabled:text-on-accent"
        />
      </div>
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

function StampGrid({ onPick }: { onPick: (stamp: Stamp) => void }) {
  const [{ data }] = useQuery({ query: Stamps });
  return (
    <div className="thin-scroll grid max-h-72 min-h-24 grid-cols-4 gap-1 overflow-y-auto">
      {data?.stamps.map((stamp) => (
        <button
          key={stamp.id}
          type="button"
          title={stamp.name}
          className="rounded-lg p-1 hover:bg-hover"
          onClick={() => onPick(stamp)}
        >
          <img src={stamp.imageUrl} alt={stamp.name} className="size-16" width={64} height={64} />
        </button>
      ))}
    </div>
  );
}

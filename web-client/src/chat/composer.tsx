/** The message field: text with mentions, or a stamp. */
import type { KeyboardEvent, Ref } from "react";
import { useQuery } from "urql";
import { LIMITS } from "../api/limits";
import { isText, useDraft } from "../session/drafts";
import { IconButton } from "../ui/button";
import { useLength } from "../ui/length";
import { MentionField } from "../ui/mentions";
import { Popover } from "../ui/popover";
import { useTranslation } from "../ui/preferences";
import { type Stamp, Stamps } from "./operations";
import { useOutbox } from "./outbox";

interface Props {
  topicId: string;
  topicTitle: string;
  communityId: string;
  field: Ref<HTMLTextAreaElement>;
  onSent: () => void;
  /** Called for ArrowUp in an empty field. */
  onEditLast: () => void;
}

export function Composer({ topicId, topicTitle, communityId, field, onSent, onEditLast }: Props) {
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

/** The message field: text with mentions, or a stamp. Drafts are kept per viewer and topic. */
import { type KeyboardEvent, type Ref, useState } from "react";
import { useQuery } from "urql";
import { useViewer } from "../session/viewer";
import { IconButton } from "../ui/button";
import { MentionField } from "../ui/mentions";
import { Popover } from "../ui/popover";
import { useTranslation } from "../ui/preferences";
import { type Stamp, Stamps } from "./operations";
import { useOutbox } from "./outbox";

const LENGTH_MAX = 4000;
const drafts = new Map<string, string>();

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
  const draftKey = `${useViewer().id} ${topicId}`;
  const [text, setText] = useState(drafts.get(draftKey) ?? "");

  function changeText(next: string) {
    drafts.set(draftKey, next);
    setText(next);
  }

  function send(stamp: Stamp | null = null) {
    const message = stamp ? "" : text.trim();
    if (!message && !stamp) return;
    outbox.send(topicId, message, stamp);
    if (!stamp) changeText("");
    onSent();
  }

  function handleKey(event: KeyboardEvent) {
    if (event.key !== "ArrowUp" || text) return;
    event.preventDefault();
    onEditLast();
  }

  return (
    <form
      className="mx-auto mb-3 flex w-[min(100%-1.5rem,62rem)] items-end gap-1 rounded-card border border-quiet bg-raised p-1.5 focus-within:border-accent"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <StampPicker onPick={send} />
      <MentionField
        ref={field}
        rows={1}
        className="thin-scroll block field-sizing-content max-h-48 w-full resize-none bg-transparent px-1 py-1.5 outline-none"
        aria-label={t("composer.label", { topic: topicTitle })}
        placeholder={t("composer.label", { topic: topicTitle })}
        value={text}
        onText={changeText}
        onEnter={send}
        onKeyDown={handleKey}
        maxLength={LENGTH_MAX}
        communityId={communityId}
      />
      <IconButton
        icon="send"
        label={t("composer.send")}
        type="submit"
        disabled={!text.trim()}
        className="enabled:bg-accent enabled:text-on-accent"
      />
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

/** One message with its reactions and actions. */
import { type KeyboardEvent, memo, useState } from "react";
import { hrefOf } from "../../app/router";
import { EmojiButton } from "../../emoji/emoji-button";
import { dateAndTime, dateOf, dayLabel, timeOfDay } from "../../i18n/times";
import { type CommunityRights, mayActOn, mayModerate } from "../../moderation/rights";
import { ReportDialog } from "../../reports/report-dialog";
import { ReactionPicture } from "../../stamps/reaction-picture";
import { Avatar } from "../../ui/avatar";
import { IconButton } from "../../ui/button";
import { ConfirmDialog } from "../../ui/dialogs/confirm";
import { Dialog } from "../../ui/dialogs/dialog";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import type { Message } from "../operations";
import { useQuoter } from "../quotes/quoter";
import { useThreadOpener } from "../threads/opener";
import { ThreadLink } from "../threads/thread-link";
import { ThreadOrigin } from "../threads/thread-origin";
import type { TopicView } from "../topics/topic-view";
import { MessageEditForm } from "./edit-form";
import { MessageBody } from "./message-body";
import { WhoReactedList } from "./who-reacted";

interface Props {
  message: Message;
  isNewDay: boolean;
  isFirstUnread: boolean;
  isContinuation: boolean;
  topicView: TopicView;
  isOwn: boolean;
  isPinned: boolean;
  communityId: string;
  /** Whether the message is in a conversation, which nobody moderates, or in a thread of one. */
  isInConversation: boolean;
  /** The viewer's rights in the community. */
  rights: CommunityRights;
  isTarget: boolean;
  isEditing: boolean;
  setEditedId: (id: string | null) => void;
  isTabStop: boolean;
  onFocus: (id: string) => void;
  onKeyDown: (event: KeyboardEvent<HTMLElement>, id: string) => void;
}

/** Memoised: its function props must be stable. */
export const MessageRow = memo(function MessageRow(props: Props) {
  const { message, isContinuation, isOwn, isTarget, isEditing, setEditedId, isTabStop, topicView } = props;
  // The toolbar is most of a row's elements, so it is rendered only for the row with the pointer or focus.
  const [isActive, setIsActive] = useState(false);
  const { t, language } = useTranslation();
  const postedAt = dateOf(message.timestamp);
  const { author } = message;
  const isDeleted = message.deletedAt !== null;

  function handleKey(event: KeyboardEvent<HTMLElement>) {
    const canEdit = isOwn && !isDeleted && !message.threadReply;
    if (event.target === event.currentTarget && event.key === "e" && canEdit) {
      event.preventDefault();
      setEditedId(message.id);
    } else props.onKeyDown(event, message.id);
  }

  return (
    <>
      {props.isNewDay && <TimelineDivider text={dayLabel(language, postedAt, new Date())} />}
      {props.isFirstUnread && <TimelineDivider text={t("timeline.unread")} isUnread />}
      <article
        id={`message-${message.id}`}
        tabIndex={isTabStop ? 0 : -1}
        aria-label={t("message.by", { name: author.name, time: dateAndTime(language, postedAt) })}
        onFocus={() => {
          setIsActive(true);
          props.onFocus(message.id);
        }}
        onPointerEnter={() => setIsActive(true)}
        onKeyDown={handleKey}
        data-message={message.id}
        className={`group relative mx-1 flex gap-3 rounded-xl px-3 hover:bg-well focus-within:bg-well sm:mx-2 ${isContinuation ? "py-0.5" : "mt-2 py-1"} ${isTarget ? "permalink-target" : ""}`}
      >
        <div className="w-9 shrink-0 pt-0.5">{!isContinuation && <Avatar user={author} />}</div>
        <div className="min-w-0 max-w-3xl grow">
          {!isContinuation && (
            <p className="flex flex-wrap items-baseline gap-x-2">
              <a href={hrefOf({ name: "person", id: author.id })} className="font-semibold hover:underline">
                {author.name}
              </a>
              <a
                href={hrefOf({ name: "topic", id: message.topicId, at: message.timestamp })}
                className="text-xs text-quiet hover:underline"
                title={dateAndTime(language, postedAt)}
              >
                <time dateTime={postedAt.toISOString()}>{timeOfDay(language, postedAt)}</time>
              </a>
            </p>
          )}
          <ThreadOrigin message={message} />
          {isDeleted ? (
            <p className="text-quiet italic">{t("message.deleted")}</p>
          ) : isEditing ? (
            <MessageEditForm message={message} topicView={topicView} onDone={() => setEditedId(null)} />
          ) : (
            <MessageBody message={message} />
          )}
          {message.reactions.length > 0 && <MessageReactions message={message} topicView={topicView} />}
          <ThreadLink message={message} />
        </div>
        {isActive && !isDeleted && !isEditing && <MessageToolbar {...props} />}
      </article>
    </>
  );
});

function TimelineDivider({ text, isUnread = false }: { text: string; isUnread?: boolean }) {
  const colour = isUnread ? "text-accent" : "text-quiet";
  const lineColour = isUnread ? "bg-accent" : "bg-line";
  return (
    <div
      data-testid={isUnread ? "read-mark" : undefined}
      className={`flex items-center gap-3 px-4 pb-1 pt-4 text-xs font-medium ${colour}`}
    >
      <span className={`h-px grow ${lineColour}`} />
      {text}
      <span className={`h-px grow ${lineColour}`} />
    </div>
  );
}

function MessageReactions({ message, topicView }: { message: Message; topicView: TopicView }) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <div className="mt-1 flex flex-wrap items-center gap-1.5">
      {message.reactions.map(({ emoji, count, reacted }) => (
        <button
          key={emoji}
          type="button"
          aria-pressed={reacted}
          aria-label={t("reaction.of", { emoji, count })}
          onClick={() => topicView.react(message, emoji)}
          className="inline-flex min-h-7 items-center gap-1 rounded-full border border-line bg-raised px-2 text-sm tabular-nums hover:bg-hover aria-pressed:border-accent aria-pressed:bg-glow aria-pressed:text-accent"
        >
          <span aria-hidden="true" className="inline-flex">
            <ReactionPicture emoji={emoji} />
          </span>
          {count}
        </button>
      ))}
      <button
        type="button"
        onClick={() => setIsOpen(true)}
        className="min-h-7 rounded-full px-2 text-xs text-quiet underline-offset-2 hover:underline"
      >
        {t("reaction.who")}
      </button>
      {isOpen && (
        <Dialog title={t("reaction.who")} onClose={() => setIsOpen(false)}>
          <WhoReactedList id={message.id} />
        </Dialog>
      )}
    </div>
  );
}

function MessageToolbar(props: Props) {
  const { message, topicView, isOwn, isPinned, communityId, isInConversation, rights, setEditedId } = props;
  const mayActOnAuthor = !isOwn && message.authorRole !== undefined && mayActOn(rights, message.authorRole);
  // Its content is that of the reply, which is edited and reacted to in the thread.
  const isCrossPost = Boolean(message.threadReply);
  const openThread = useThreadOpener();
  const quote = useQuoter();
  const { t } = useTranslation();
  const [isDeleting, setIsDeleting] = useState(false);
  const [isReporting, setIsReporting] = useState(false);
  function copyLink() {
    const address =
      location.href.split("#")[0] + hrefOf({ name: "topic", id: message.topicId, at: message.timestamp });
    navigator.clipboard.writeText(address).then(
      () => notify(t("message.linkCopied")),
      () => notify(address),
    );
  }
  return (
    <div className="invisible absolute -top-4 right-2 max-sm:-top-9 flex rounded-full border border-line bg-raised p-0.5 shadow-raised group-focus-within:visible group-hover:visible has-[:popover-open]:visible">
      {!isCrossPost && (
        <EmojiButton
          label={t("reaction.add")}
          size="size-8"
          hasStamps
          onPick={(emoji) => topicView.react(message, emoji)}
        />
      )}
      {openThread && !isCrossPost && (
        <IconButton icon="chat" label={t("thread.open")} size="size-8" onClick={() => openThread(message)} />
      )}
      {quote && (
        <IconButton icon="quote" label={t("quote.action")} size="size-8" onClick={() => quote(message)} />
      )}
      <IconButton icon="link" label={t("message.copyLink")} size="size-8" onClick={copyLink} />
      {isOwn && message.text && !isCrossPost && (
        <IconButton
          icon="edit"
          label={t("message.edit")}
          size="size-8"
          onClick={() => setEditedId(message.id)}
        />
      )}
      {!isOwn && (
        <IconButton
          icon="flag"
          label={t("report.action")}
          size="size-8"
          onClick={() => setIsReporting(true)}
        />
      )}
      {mayModerate(rights) && openThread && (
        <IconButton
          icon="pin"
          label={t(isPinned ? "pins.unpin" : "pins.pin")}
          aria-pressed={isPinned}
          size="size-8"
          className="aria-pressed:text-accent"
          onClick={() => (isPinned ? topicView.pins.unpin(message.id) : topicView.pins.pin(message.id))}
        />
      )}
      {mayActOnAuthor && (
        <a
          href={hrefOf({ name: "community", id: communityId, tab: "members", person: message.author.id })}
          aria-label={t("message.moderate", { name: message.author.name })}
          title={t("message.moderate", { name: message.author.name })}
          className="inline-flex size-8 shrink-0 items-center justify-center rounded-full text-quiet hover:bg-hover hover:text-ink"
        >
          <Icon name="shield" className="size-4" />
        </a>
      )}
      {(isOwn || rights.isAdmin || mayActOnAuthor) && (
        <IconButton
          icon="trash"
          label={t("message.delete")}
          size="size-8"
          onClick={() => setIsDeleting(true)}
        />
      )}
      {isReporting && (
        <ReportDialog
          subject="MESSAGE"
          id={message.id}
          name={message.author.name}
          isForModerators={!isInConversation}
          onClose={() => setIsReporting(false)}
        />
      )}
      {isDeleting && (
        <ConfirmDialog
          title={t("message.delete")}
          text={t(isCrossPost ? "thread.removeAsk" : isOwn ? "message.deleteAsk" : "message.deleteOtherAsk")}
          action={t("delete")}
          onDone={(isConfirmed) => {
            setIsDeleting(false);
            if (isConfirmed) topicView.remove(message.id);
          }}
        />
      )}
    </div>
  );
}

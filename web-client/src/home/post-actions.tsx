/** The actions below a post: reply, repost, quote, react and copy the link; and the reactions to the post. */
import { useState } from "react";
import { useMutation, useQuery } from "urql";
import { hrefOf } from "../app/router";
import { ReactionUsers } from "../chat/messages/who-reacted";
import { EmojiButton } from "../emoji/emoji-button";
import { ReactionPicture } from "../stamps/reaction-picture";
import { IconButton } from "../ui/button";
import { Dialog } from "../ui/dialogs/dialog";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { notify, notifyFailure } from "../ui/toasts";
import {
  AddPostReaction,
  type PostBody,
  RemovePostReaction,
  Repost,
  UndoRepost,
  WhoReactedToPost,
} from "./operations";
import { type PostChange, reactionChange, repostChange, shownRepostCount } from "./post-changes";
import { PostComposer } from "./post-composer";
import { QuotedPostCard } from "./quoted-post";

interface Props {
  post: PostBody;
  /** Called before and after the server has answered, since the post may have been loaded again meanwhile. */
  onChanged: (change: PostChange) => void;
}

const COUNTED_CLASS =
  "inline-flex min-h-9 items-center gap-1.5 rounded-full px-2.5 text-sm text-quiet tabular-nums hover:bg-hover hover:text-ink aria-pressed:text-accent";

export function PostActions({ post, onChanged }: Props) {
  const { t } = useTranslation();
  const [, addReaction] = useMutation(AddPostReaction);
  const [, removeReaction] = useMutation(RemovePostReaction);
  const [, repost] = useMutation(Repost);
  const [, undoRepost] = useMutation(UndoRepost);
  const { id } = post;
  const repostCount = shownRepostCount(post);

  async function submit(change: PostChange, undo: PostChange, answer: Promise<{ error?: unknown }>) {
    onChanged(change);
    const { error } = await answer;
    onChanged(error ? undo : change);
    if (error) notifyFailure(error);
  }

  function react(emoji: string) {
    const hasReacted = post.reactions.some((each) => each.emoji === emoji && each.reacted);
    const answer = hasReacted ? removeReaction({ id, emoji }) : addReaction({ id, emoji });
    void submit(reactionChange(emoji, !hasReacted), reactionChange(emoji, hasReacted), answer);
  }

  function toggleRepost() {
    const answer = post.reposted ? undoRepost({ id }) : repost({ id });
    void submit(repostChange(!post.reposted), repostChange(post.reposted), answer);
  }

  function copyLink() {
    const address = location.href.split("#")[0] + hrefOf({ name: "post", id });
    navigator.clipboard.writeText(address).then(
      () => notify(t("message.linkCopied")),
      () => notify(address),
    );
  }

  return (
    <>
      {post.reactions.length > 0 && <PostReactions post={post} onReact={react} />}
      <div className="-ml-2.5 mt-1 flex items-center gap-x-1 sm:gap-x-5">
        <a
          href={hrefOf({ name: "post", id })}
          aria-label={t("post.replyCount", { count: post.replyCount })}
          title={t("post.reply")}
          className={COUNTED_CLASS}
        >
          <Icon name="chat" className="size-4" />
          {post.replyCount > 0 && post.replyCount}
        </a>
        <button
          type="button"
          aria-pressed={post.reposted}
          aria-label={t("post.repost", { count: repostCount })}
          onClick={toggleRepost}
          className={COUNTED_CLASS}
        >
          <Icon name="repost" className="size-4" />
          {repostCount > 0 && repostCount}
        </button>
        <QuoteButton post={post} onChanged={onChanged} />
        <EmojiButton label={t("reaction.add")} size="size-8" hasStamps onPick={react} />
        <IconButton icon="link" label={t("post.copyLink")} size="size-8" onClick={copyLink} />
      </div>
    </>
  );
}

function QuoteButton({ post, onChanged }: Props) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  function handlePosted() {
    setIsOpen(false);
    onChanged((current) => ({ ...current, quoteCount: current.quoteCount + 1 }));
    notify(t("post.quoted"));
  }
  return (
    <>
      <button
        type="button"
        aria-label={t("post.quote", { count: post.quoteCount })}
        title={t("post.quoteTitle")}
        onClick={() => setIsOpen(true)}
        className={COUNTED_CLASS}
      >
        <Icon name="quote" className="size-4" />
        {post.quoteCount > 0 && post.quoteCount}
      </button>
      {isOpen && (
        <Dialog title={t("post.quoteTitle")} onClose={() => setIsOpen(false)}>
          <PostComposer kind="quote" otherId={post.id} onPosted={handlePosted} />
          <QuotedPostCard post={post} />
        </Dialog>
      )}
    </>
  );
}

function PostReactions({ post, onReact }: { post: PostBody; onReact: (emoji: string) => void }) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <div className="mt-2 flex flex-wrap items-center gap-1.5">
      {post.reactions.map(({ emoji, count, reacted }) => (
        <button
          key={emoji}
          type="button"
          aria-pressed={reacted}
          aria-label={t("reaction.of", { emoji, count })}
          onClick={() => onReact(emoji)}
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
          <WhoReactedToPostList id={post.id} />
        </Dialog>
      )}
    </div>
  );
}

function WhoReactedToPostList({ id }: { id: string }) {
  const [{ data, error }] = useQuery({
    query: WhoReactedToPost,
    variables: { id },
    requestPolicy: "network-only",
  });
  if (error) return <ErrorState error={error} />;
  if (!data) return <LoadingState rows={3} />;
  return <ReactionUsers reactions={data.post?.reactions ?? []} />;
}

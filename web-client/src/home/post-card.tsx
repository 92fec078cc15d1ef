/** One post, with its fan-out progress for the author. */
import { useState } from "react";
import { useMutation } from "urql";
import { hrefOf } from "../app/router";
import { ConfirmDialog } from "../chat/confirm";
import { dateAndTime, dateOf, relativeTime } from "../i18n/times";
import { useViewer } from "../session/viewer";
import { Avatar } from "../ui/avatar";
import { IconButton } from "../ui/button";
import { LinkPreviewCard } from "../ui/link-preview";
import { useTranslation } from "../ui/preferences";
import { RichText } from "../ui/rich-text";
import { notifyFailure } from "../ui/toasts";
import { FanOutProgress } from "./fan-out";
import { DeletePost, type Post } from "./operations";

export function PostCard({ post, onDeleted }: { post: Post; onDeleted: (id: string) => void }) {
  const { t, language } = useTranslation();
  const viewer = useViewer();
  const postedAt = dateOf(post.timestamp);
  const { author } = post;
  const mayDelete = author.id === viewer.id || viewer.roles.includes("ADMIN");
  return (
    <article
      aria-label={t("post.by", { name: author.name, time: dateAndTime(language, postedAt) })}
      data-post={post.id}
      className="group flex gap-3 border-b border-line py-4"
    >
      <Avatar user={author} />
      <div className="min-w-0 grow">
        <div className="flex items-baseline gap-x-2">
          <a
            href={hrefOf({ name: "person", id: author.id })}
            className="truncate font-semibold hover:underline"
          >
            {author.name}
          </a>
          <span className="truncate text-sm text-quiet">@{author.handle}</span>
          <time
            dateTime={postedAt.toISOString()}
            title={dateAndTime(language, postedAt)}
            className="shrink-0 text-sm text-quiet"
          >
            {relativeTime(language, postedAt, new Date())}
          </time>
          <span className="grow" />
          {mayDelete && <DeleteButton id={post.id} onDeleted={onDeleted} />}
        </div>
        <p className="whitespace-pre-wrap">
          <RichText text={post.text} mentions={post.mentions} />
        </p>
        {post.mediaUrls.length > 0 && <Media urls={post.mediaUrls} />}
        {post.linkPreview && <LinkPreviewCard preview={post.linkPreview} />}
        {post.fanOut && <FanOutProgress fanOut={post.fanOut} />}
      </div>
    </article>
  );
}

function Media({ urls }: { urls: readonly string[] }) {
  return (
    <div className="mt-2 grid grid-cols-2 gap-1 overflow-hidden rounded-xl">
      {urls.map((url) => (
        <img
          key={url}
          src={url}
          alt=""
          loading="lazy"
          className="aspect-video size-full bg-well object-cover only:col-span-2"
        />
      ))}
    </div>
  );
}

function DeleteButton({ id, onDeleted }: { id: string; onDeleted: (id: string) => void }) {
  const { t } = useTranslation();
  const [isConfirming, setIsConfirming] = useState(false);
  const [, remove] = useMutation(DeletePost);
  async function handleAnswer(isConfirmed: boolean) {
    setIsConfirming(false);
    if (!isConfirmed) return;
    const { error } = await remove({ id });
    if (error) notifyFailure(error);
    else onDeleted(id);
  }
  return (
    <>
      <IconButton
        icon="trash"
        label={t("post.delete")}
        size="size-8"
        className="-my-2 self-center group-focus-within:opacity-100 group-hover:opacity-100 [@media(hover:hover)]:opacity-0"
        onClick={() => setIsConfirming(true)}
      />
      {isConfirming && (
        <ConfirmDialog
          title={t("post.delete")}
          text={t("post.deleteAsk")}
          action={t("delete")}
          onDone={handleAnswer}
        />
      )}
    </>
  );
}

/** One post, with its actions. */
import { useState } from "react";
import { useMutation } from "urql";
import { useCurrent } from "../api/current-text";
import { hrefOf } from "../app/router";
import { AttachmentList } from "../files/attachment-list";
import { dateAndTime, dateOf, relativeTime } from "../i18n/times";
import { ReportDialog } from "../reports/report-dialog";
import { mayAdminister } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Avatar } from "../ui/avatar";
import { IconButton } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { LinkPreviewCard } from "../ui/text/link-preview";
import { RichText } from "../ui/text/rich-text";
import { notifyFailure } from "../ui/toasts";
import { DeletePost, type Post, type PostBody } from "./operations";
import { PostActions } from "./post-actions";
import type { PostChange } from "./post-changes";
import { EditedMark, PostEditForm } from "./post-edit";
import { PostMuteButton } from "./post-mute";
import { QuotedPostCard } from "./quoted-post";

interface Props {
  post: Post;
  /** Shows a change of the post in all entries that hold or repeat it. */
  onChanged: (postId: string, change: PostChange) => void;
  onDeleted: (id: string) => void;
}

/** An entry of a feed: a post, or a repost with the name of the person above the original. */
export function PostCard({ post: entry, onChanged, onDeleted }: Props) {
  const { t, language } = useTranslation();
  const viewer = useViewer();
  const [isEditing, setIsEditing] = useState(false);
  const post = useCurrent<PostBody>(entry.repostOf ?? entry);
  if (post.deletedAt || (entry.isRepost && entry.repostOf === null)) return <DeletedOriginal />;
  const postedAt = dateOf(post.timestamp);
  const { author } = post;
  const mayDelete = author.id === viewer.id || mayAdminister(viewer.roles);
  return (
    <article
      aria-label={t("post.by", { name: author.name, time: dateAndTime(language, postedAt) })}
      data-post={post.id}
      data-entry={entry.id}
      className="group flex flex-wrap gap-3 border-b border-line py-4"
    >
      {entry.isRepost && (
        <p className="-mb-2 flex w-full items-center gap-2 pl-5 text-sm text-quiet">
          <Icon name="repost" className="size-4" />
          <a href={hrefOf({ name: "person", id: entry.author.id })} className="truncate hover:underline">
            {t("post.repostedBy", { name: entry.author.name })}
          </a>
        </p>
      )}
      <Avatar user={author} />
      <div className="min-w-0 flex-1">
        <div className="flex items-baseline gap-x-2">
          <a
            href={hrefOf({ name: "person", id: author.id })}
            className="truncate font-semibold hover:underline"
          >
            {author.name}
          </a>
          <span className="truncate text-sm text-quiet">@{author.handle}</span>
          <a
            href={hrefOf({ name: "post", id: post.id })}
            title={dateAndTime(language, postedAt)}
            className="shrink-0 text-sm text-quiet hover:underline"
          >
            <time dateTime={postedAt.toISOString()}>{relativeTime(language, postedAt, new Date())}</time>
          </a>
          <span className="grow" />
          <PostMuteButton
            post={post}
            className={ACTION_CLASS}
            onChanged={(change) => onChanged(post.id, change)}
          />
          {author.id === viewer.id && !isEditing && (
            <IconButton
              icon="edit"
              label={t("post.edit")}
              size="size-8"
              className={ACTION_CLASS}
              onClick={() => setIsEditing(true)}
            />
          )}
          {author.id !== viewer.id && <ReportButton id={post.id} name={author.name} />}
          {mayDelete && <DeleteButton id={post.id} onDeleted={() => onDeleted(entry.id)} />}
        </div>
        {post.inReplyTo && (
          <p className="text-sm text-quiet">
            <a
              href={hrefOf({ name: "post", id: post.inReplyTo.id })}
              className="inline-block min-h-6 leading-6 hover:underline"
            >
              {t("post.inReplyTo", { name: post.inReplyTo.author.name })}
            </a>
          </p>
        )}
        {isEditing ? (
          <PostEditForm
            post={post}
            onChanged={(change) => onChanged(post.id, change)}
            onDone={() => setIsEditing(false)}
          />
        ) : (
          post.text && (
            <div className="break-words">
              <RichText text={post.text} mentions={post.mentions} />
            </div>
          )
        )}
        {post.editedAt && <EditedMark id={post.id} />}
        {post.mediaUrls.length > 0 && <PostMedia urls={post.mediaUrls} />}
        {post.attachments.length > 0 && <AttachmentList attachments={post.attachments} />}
        {post.linkPreview && <LinkPreviewCard preview={post.linkPreview} />}
        {post.isQuote && <QuotedPostCard post={post.quoteOf} />}
        <PostActions post={post} onChanged={(change) => onChanged(post.id, change)} />
      </div>
    </article>
  );
}

function DeletedOriginal() {
  const { t } = useTranslation();
  return <p className="border-b border-line py-4 text-quiet italic">{t("post.gone")}</p>;
}

/** Pictures of a post, two in a row. The first of three spans both rows. A last picture alone in its row fills the row. */
function PostMedia({ urls }: { urls: readonly string[] }) {
  const { t } = useTranslation();
  const isTriple = urls.length === 3;
  return (
    <div className="mt-2 grid grid-cols-2 gap-1 overflow-hidden rounded-xl">
      {urls.map((url, index) => (
        <img
          // biome-ignore lint/suspicious/noArrayIndexKey: the pictures of a post keep their order, and may be equal.
          key={index}
          src={url}
          alt={t("post.pictureOf", { number: index + 1, count: urls.length })}
          loading="lazy"
          className={`size-full bg-well object-cover ${isTriple && index === 0 ? "row-span-2" : isTriple ? "aspect-video" : "aspect-video odd:last:col-span-2"}`}
        />
      ))}
    </div>
  );
}

const ACTION_CLASS =
  "-my-2 self-center group-focus-within:opacity-100 group-hover:opacity-100 [@media(hover:hover)]:opacity-0";

function ReportButton({ id, name }: { id: string; name: string }) {
  const { t } = useTranslation();
  const [isReporting, setIsReporting] = useState(false);
  return (
    <>
      <IconButton
        icon="flag"
        label={t("report.title.POST", { name })}
        size="size-8"
        className={ACTION_CLASS}
        onClick={() => setIsReporting(true)}
      />
      {isReporting && (
        <ReportDialog subject="POST" id={id} name={name} onClose={() => setIsReporting(false)} />
      )}
    </>
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
        className={ACTION_CLASS}
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

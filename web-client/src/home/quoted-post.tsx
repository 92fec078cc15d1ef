/** The post that another post quotes, inside of that post. */
import { useCurrent } from "../api/current-text";
import { hrefOf } from "../app/router";
import { dateAndTime, dateOf, relativeTime } from "../i18n/times";
import { Avatar } from "../ui/avatar";
import { useTranslation } from "../ui/preferences";
import { RichText } from "../ui/text/rich-text";
import type { QuotedPost } from "./operations";
import { QuotedFiles } from "./quoted-files";

/** `post` is null if the quoted post was deleted or the viewer must not see it. */
export function QuotedPostCard({ post: quoted }: { post: QuotedPost | null }) {
  const { t, language } = useTranslation();
  const post = useCurrent(quoted);
  const className = "mt-2 rounded-xl border border-line px-3 py-2";
  if (post === null || post.deletedAt)
    return <p className={`${className} text-quiet italic`}>{t("post.gone")}</p>;
  const { author } = post;
  const postedAt = dateOf(post.timestamp);
  return (
    <blockquote className={className}>
      <div className="flex items-center gap-2">
        <Avatar user={author} size="small" />
        <a
          href={hrefOf({ name: "person", id: author.id })}
          className="truncate text-sm font-semibold hover:underline"
        >
          {author.name}
        </a>
        <a
          href={hrefOf({ name: "post", id: post.id })}
          title={dateAndTime(language, postedAt)}
          className="shrink-0 text-sm text-quiet hover:underline"
        >
          <time dateTime={postedAt.toISOString()}>{relativeTime(language, postedAt, new Date())}</time>
        </a>
      </div>
      {post.text && (
        <div className="break-words">
          <RichText text={post.text} mentions={post.mentions} />
        </div>
      )}
      {post.mediaUrls[0] && (
        <img
          src={post.mediaUrls[0]}
          alt={t("post.pictureOf", { number: 1, count: post.mediaUrls.length })}
          loading="lazy"
          className="mt-2 aspect-video w-full rounded-lg bg-well object-cover"
        />
      )}
      {post.attachments.length > 0 && <QuotedFiles attachments={post.attachments} />}
    </blockquote>
  );
}

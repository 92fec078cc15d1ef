/** The post field: text with mentions and hashtags, and image URLs. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { isRetryable } from "../api/failure";
import { useViewer } from "../session/viewer";
import { Avatar } from "../ui/avatar";
import { Button, IconButton } from "../ui/button";
import { MentionField } from "../ui/mentions";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { CreatePost, type Post } from "./operations";

const LENGTH_MAX = 4000;
const SHOW_REMAINING_BELOW = 200;

export function PostComposer({ onPosted }: { onPosted: (post: Post) => void }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const viewer = useViewer();
  const [text, setText] = useState("");
  const [mediaText, setMediaText] = useState<string | null>(null);
  const [isPosting, setIsPosting] = useState(false);
  // The idempotency key stays until the post is changed or sent, so a retry never posts twice.
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID());
  const mediaUrls = mediaText?.split(/\s+/).filter(Boolean) ?? [];
  const canPost = !isPosting && (text.trim() !== "" || mediaUrls.length > 0);
  const remaining = LENGTH_MAX - text.length;

  function changeText(next: string) {
    setText(next);
    setIdempotencyKey(crypto.randomUUID());
  }

  async function post() {
    if (!canPost) return;
    setIsPosting(true);
    try {
      const input = { text: text.trim(), mediaUrls, idempotencyKey: idempotencyKey };
      onPosted((await request(direct, CreatePost, { input })).createPost);
      changeText("");
      setMediaText(null);
    } catch (error) {
      notifyFailure(error);
      if (isRetryable(error)) notify(t("post.kept"));
    }
    setIsPosting(false);
  }

  return (
    <form
      className="flex gap-3 rounded-card border border-line bg-raised p-3"
      onSubmit={(event) => {
        event.preventDefault();
        void post();
      }}
    >
      <Avatar user={viewer} />
      <div className="flex min-w-0 grow flex-col gap-2">
        <MentionField
          rows={2}
          className="block field-sizing-content max-h-80 min-h-14 w-full resize-none rounded-lg bg-transparent p-1 text-lg outline-offset-0"
          aria-label={t("post.label")}
          placeholder={t("post.label")}
          value={text}
          onText={changeText}
          maxLength={LENGTH_MAX}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && void post()}
        />
        {mediaText !== null && (
          <textarea
            className="field text-sm"
            aria-label={t("post.media")}
            placeholder={t("post.media")}
            rows={2}
            value={mediaText}
            onChange={(event) => {
              setMediaText(event.target.value);
              setIdempotencyKey(crypto.randomUUID());
            }}
          />
        )}
        <div className="flex items-center gap-2">
          <IconButton
            icon="image"
            label={t("post.media")}
            aria-pressed={mediaText !== null}
            onClick={() => setMediaText(mediaText === null ? "" : null)}
          />
          <span className="grow text-right text-sm text-quiet tabular-nums">
            {remaining < SHOW_REMAINING_BELOW && remaining}
          </span>
          <Button type="submit" kind="main" disabled={!canPost}>
            {t("post.send")}
          </Button>
        </div>
      </div>
    </form>
  );
}

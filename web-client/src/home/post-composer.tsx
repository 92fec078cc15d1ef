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
const WARN_BELOW = 200;

export function PostComposer({ onPosted }: { onPosted: (post: Post) => void }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const viewer = useViewer();
  const [text, setText] = useState("");
  const [media, setMedia] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  // The idempotency key stays until the post is changed or sent, so a retry never posts twice.
  const [key, setKey] = useState(() => crypto.randomUUID());
  const mediaUrls = media?.split(/\s+/).filter(Boolean) ?? [];
  const ready = !busy && (text.trim() !== "" || mediaUrls.length > 0);
  const remaining = LENGTH_MAX - text.length;

  function write(next: string) {
    setText(next);
    setKey(crypto.randomUUID());
  }

  async function post() {
    if (!ready) return;
    setBusy(true);
    try {
      const input = { text: text.trim(), mediaUrls, idempotencyKey: key };
      onPosted((await request(direct, CreatePost, { input })).createPost);
      write("");
      setMedia(null);
    } catch (error) {
      notifyFailure(error);
      if (isRetryable(error)) notify(t("post.kept"));
    }
    setBusy(false);
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
          onText={write}
          maxLength={LENGTH_MAX}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && void post()}
        />
        {media !== null && (
          <textarea
            className="field text-sm"
            aria-label={t("post.media")}
            placeholder={t("post.media")}
            rows={2}
            value={media}
            onChange={(event) => {
              setMedia(event.target.value);
              setKey(crypto.randomUUID());
            }}
          />
        )}
        <div className="flex items-center gap-2">
          <IconButton
            icon="image"
            label={t("post.media")}
            aria-pressed={media !== null}
            onClick={() => setMedia(media === null ? "" : null)}
          />
          <span className="grow text-right text-sm text-quiet tabular-nums">
            {remaining < WARN_BELOW && remaining}
          </span>
          <Button type="submit" kind="main" disabled={!ready}>
            {t("post.send")}
          </Button>
        </div>
      </div>
    </form>
  );
}

/** The post field: text with mentions and hashtags, and image URLs. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { isRetryable } from "../api/failure";
import { LIMITS } from "../api/limits";
import { useDraft } from "../session/drafts";
import { useViewer } from "../session/viewer";
import { Avatar } from "../ui/avatar";
import { Button, IconButton } from "../ui/button";
import { useLength } from "../ui/length";
import { MentionField } from "../ui/mentions";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { CreatePost, type Post } from "./operations";

interface PostDraft {
  text: string;
  /** Null while the field for image URLs is hidden. */
  mediaText: string | null;
  /** Stays until the post is changed or sent, so a retry never posts twice, even after a reload. */
  idempotencyKey: string;
}

const emptyDraft = (): PostDraft => ({ text: "", mediaText: null, idempotencyKey: crypto.randomUUID() });

function isPostDraft(value: unknown): value is PostDraft {
  const { text, mediaText, idempotencyKey } = Object(value);
  const isMediaText = mediaText === null || typeof mediaText === "string";
  return typeof text === "string" && isMediaText && typeof idempotencyKey === "string";
}

export function PostComposer({ onPosted }: { onPosted: (post: Post) => void }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const viewer = useViewer();
  const [initialDraft] = useState(emptyDraft);
  const { draft, setDraft, discardDraft } = useDraft("post", initialDraft, isPostDraft);
  const { text, mediaText, idempotencyKey } = draft;
  const [isPosting, setIsPosting] = useState(false);
  const length = useLength(text, LIMITS.post);
  const mediaUrls = mediaText?.split(/\s+/).filter(Boolean) ?? [];
  const hasContent = text.trim() !== "" || mediaUrls.length > 0;
  const canPost = hasContent && !length.isTooLong && !isPosting;

  function change(part: Partial<PostDraft>) {
    const next = { ...draft, ...part, idempotencyKey: crypto.randomUUID() };
    if (next.text === "" && next.mediaText === null) discardDraft();
    else setDraft(next);
  }

  async function post() {
    if (!canPost) return;
    setIsPosting(true);
    try {
      const input = { text: text.trim(), mediaUrls, idempotencyKey };
      onPosted((await request(direct, CreatePost, { input })).createPost);
      discardDraft();
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
          onText={(text) => change({ text })}
          onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && void post()}
          {...length.fieldProps}
        />
        {mediaText !== null && (
          <textarea
            className="field text-sm"
            aria-label={t("post.media")}
            placeholder={t("post.media")}
            rows={2}
            value={mediaText}
            onChange={(event) => change({ mediaText: event.target.value })}
          />
        )}
        <div className="flex items-center gap-2">
          <IconButton
            icon="image"
            label={t("post.media")}
            aria-pressed={mediaText !== null}
            onClick={() => change({ mediaText: mediaText === null ? "" : null })}
          />
          <span className="grow">{length.note}</span>
          <Button type="submit" kind="main" disabled={!canPost}>
            {t("post.send")}
          </Button>
        </div>
      </div>
    </form>
  );
}

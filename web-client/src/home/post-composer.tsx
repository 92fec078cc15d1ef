/** The post field: text with mentions and hashtags, files, and image URLs. */
import { useRef, useState } from "react";
import { request, useApi } from "../api/api";
import { isRetryable } from "../api/failure";
import { LIMITS } from "../api/limits";
import { EmojiButton } from "../emoji/emoji-button";
import { ComposedFileList } from "../files/composed-list";
import { FilePicker } from "../files/file-picker";
import { useComposedFiles } from "../files/use-composed-files";
import { useDraft } from "../session/drafts";
import { useViewer } from "../session/viewer";
import { Avatar } from "../ui/avatar";
import { Button, IconButton } from "../ui/button";
import { FormattingHelp } from "../ui/fields/formatting-help";
import { insertText } from "../ui/fields/insert-text";
import { useLength } from "../ui/fields/length";
import { MentionField } from "../ui/fields/mentions";
import { typedKey } from "../ui/fields/typed-key";
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

interface Props {
  onPosted: (post: Post) => void;
  /** The kind of the post. A reply and a quote refer to another post. */
  kind?: keyof typeof TEXTS;
  /** Id of the post to reply to or to quote. */
  otherId?: string;
}

const TEXTS = {
  post: { label: "post.label", send: "post.send" },
  reply: { label: "post.replyLabel", send: "post.reply" },
  quote: { label: "post.quoteLabel", send: "post.send" },
} as const;

export function PostComposer({ onPosted, kind = "post", otherId }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const viewer = useViewer();
  const [initialDraft] = useState(emptyDraft);
  const draftName = otherId === undefined ? "post" : `${kind} ${otherId}`;
  const { draft, setDraft, discardDraft } = useDraft(draftName, initialDraft, isPostDraft);
  const { text, mediaText, idempotencyKey } = draft;
  const [isPosting, setIsPosting] = useState(false);
  const { label, send } = TEXTS[kind];
  const length = useLength(text, LIMITS.post);
  const mediaUrls = mediaText?.split(/\s+/).filter(Boolean) ?? [];
  const composed = useComposedFiles(draftName);
  const field = useRef<HTMLTextAreaElement>(null);
  const hasContent = text.trim() !== "" || mediaUrls.length > 0 || composed.files.length > 0;
  const canPost = hasContent && composed.ready !== null && !length.isTooLong && !isPosting;

  function change(part: Partial<PostDraft>) {
    const next = { ...draft, ...part, idempotencyKey: crypto.randomUUID() };
    if (next.text === "" && next.mediaText === null) discardDraft();
    else setDraft(next);
  }

  async function post() {
    if (!canPost) return;
    setIsPosting(true);
    try {
      const attachments = (composed.ready ?? []).map(({ uploadId, altText }) => ({ uploadId, altText }));
      const input = {
        text: text.trim(),
        mediaUrls,
        attachments,
        idempotencyKey: composed.idempotencyKey(idempotencyKey),
        inReplyTo: kind === "reply" ? otherId : null,
        quoteOf: kind === "quote" ? otherId : null,
      };
      onPosted((await request(direct, CreatePost, { input })).createPost);
      discardDraft();
      composed.clear();
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
      {...composed.dropProps}
    >
      <Avatar user={viewer} />
      <div className="flex min-w-0 grow flex-col gap-2">
        <MentionField
          ref={field}
          rows={2}
          className="block field-sizing-content max-h-80 min-h-14 w-full resize-none rounded-lg bg-transparent p-1 text-lg outline-offset-0"
          aria-label={t(label)}
          placeholder={t(label)}
          value={text}
          onText={(text) => change({ text })}
          onKeyDown={(event) =>
            typedKey(event) === "Enter" && (event.ctrlKey || event.metaKey) && void post()
          }
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
        <ComposedFileList composed={composed} />
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <EmojiButton label={t("emoji.insert")} onPick={(emoji) => insertText(field.current, emoji)} />
          <FilePicker onPick={composed.add} />
          <IconButton
            icon="image"
            label={t("post.media")}
            aria-pressed={mediaText !== null}
            onClick={() => change({ mediaText: mediaText === null ? "" : null })}
          />
          <FormattingHelp />
          <span className="grow">{length.note}</span>
          <Button type="submit" kind="main" className="ml-auto" disabled={!canPost}>
            {t(send)}
          </Button>
        </div>
      </div>
    </form>
  );
}

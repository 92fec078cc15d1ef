/** Edits the text of the viewer's own post in place, and shows the earlier texts of an edited post. */
import { useEffect, useRef, useState } from "react";
import { useMutation, useQuery } from "urql";
import { LIMITS } from "../api/limits";
import { dateAndTime } from "../i18n/times";
import { isText, useDraft } from "../session/drafts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialogs/dialog";
import { useLength } from "../ui/fields/length";
import { MentionField } from "../ui/fields/mentions";
import { typedKey } from "../ui/fields/typed-key";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { RichText } from "../ui/text/rich-text";
import { notifyFailure } from "../ui/toasts";
import { EditPost, type PostBody, PostVersions } from "./operations";
import type { PostChange } from "./post-changes";

interface Props {
  post: PostBody;
  onChanged: (change: PostChange) => void;
  onDone: () => void;
}

export function PostEditForm({ post, onChanged, onDone }: Props) {
  const { t } = useTranslation();
  const { draft: text, setDraft, discardDraft } = useDraft(`edit post ${post.id}`, post.text, isText);
  const length = useLength(text, LIMITS.post);
  const [{ fetching }, edit] = useMutation(EditPost);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(field.current.value.length, field.current.value.length);
  }, []);
  const hasContent = text.trim() !== "" || post.mediaUrls.length > 0 || post.attachments.length > 0;

  function close() {
    discardDraft();
    onDone();
  }

  async function save() {
    if (length.isTooLong || !hasContent) return;
    const { data, error } = await edit({ id: post.id, text: text.trim() });
    if (!data) return notifyFailure(error);
    onChanged((current) => ({ ...current, ...data.editPost }));
    close();
  }

  return (
    <form
      className="my-1 flex flex-col gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <MentionField
        ref={field}
        className="field field-sizing-content max-h-60"
        aria-label={t("post.edit")}
        value={text}
        onText={setDraft}
        onKeyDown={(event) => {
          if (typedKey(event) === "Escape") close();
          if (typedKey(event) === "Enter" && (event.ctrlKey || event.metaKey)) void save();
        }}
        {...length.fieldProps}
      />
      {length.note}
      <div className="flex gap-2">
        <Button type="submit" kind="main" isBusy={fetching} disabled={length.isTooLong || !hasContent}>
          {t("save")}
        </Button>
        <Button onClick={close}>{t("cancel")}</Button>
      </div>
    </form>
  );
}

/** A button that says that the post was edited, and opens its earlier texts. */
export function EditedMark({ id }: { id: string }) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        title={t("post.versions")}
        onClick={() => setIsOpen(true)}
        className="block min-h-6 rounded-full text-xs text-quiet underline-offset-2 hover:underline"
      >
        {t("message.edited")}
      </button>
      {isOpen && (
        <Dialog title={t("post.versions")} onClose={() => setIsOpen(false)}>
          <VersionList id={id} />
        </Dialog>
      )}
    </>
  );
}

function VersionList({ id }: { id: string }) {
  const { language } = useTranslation();
  const [{ data, error }] = useQuery({
    query: PostVersions,
    variables: { id },
    requestPolicy: "network-only",
  });
  if (error) return <ErrorState error={error} />;
  if (!data) return <LoadingState rows={3} />;
  return (
    <ol className="thin-scroll flex max-h-[60vh] flex-col gap-4 overflow-y-auto">
      {data.post?.versions.toReversed().map(({ text, writtenAt }) => (
        <li key={writtenAt}>
          <time dateTime={writtenAt} className="text-sm text-quiet">
            {dateAndTime(language, new Date(writtenAt))}
          </time>
          <div className="break-words">
            <RichText text={text} mentions={[]} />
          </div>
        </li>
      ))}
    </ol>
  );
}

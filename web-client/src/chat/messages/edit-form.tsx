/** Edits the viewer's message in place. */
import { useEffect, useRef, useState } from "react";
import { LIMITS } from "../../api/limits";
import { isText, useDraft } from "../../session/drafts";
import { Button } from "../../ui/button";
import { useLength } from "../../ui/fields/length";
import { MentionField } from "../../ui/fields/mentions";
import { useTranslation } from "../../ui/preferences";
import { notifyFailure } from "../../ui/toasts";
import type { Message } from "../operations";
import type { TopicView } from "../topics/topic-view";

export function MessageEditForm({
  message,
  topicView,
  onDone,
}: {
  message: Message;
  topicView: TopicView;
  onDone: () => void;
}) {
  const { t } = useTranslation();
  // The text is kept as a draft, because scrolling the message out of view removes this form.
  const {
    draft: text,
    setDraft: setText,
    discardDraft,
  } = useDraft(`edit ${message.id}`, message.text, isText);
  const length = useLength(text, LIMITS.message);
  const canSave = text.trim() !== "" && !length.isTooLong;
  const [isSaving, setIsSaving] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(field.current.value.length, field.current.value.length);
  }, []);

  function close() {
    discardDraft();
    onDone();
  }

  async function save() {
    if (length.isTooLong) return;
    if (!text.trim() || text === message.text) return close();
    setIsSaving(true);
    try {
      await topicView.edit(message.id, text.trim());
      close();
    } catch (error) {
      notifyFailure(error);
      setIsSaving(false);
    }
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
        aria-label={t("message.edit")}
        value={text}
        onText={setText}
        onEnter={save}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          // The key would close an open thread as well.
          event.preventDefault();
          close();
        }}
        {...length.fieldProps}
      />
      {length.note}
      <div className="flex gap-2">
        <Button type="submit" kind="main" disabled={isSaving || !canSave}>
          {t("save")}
        </Button>
        <Button onClick={close}>{t("cancel")}</Button>
      </div>
    </form>
  );
}

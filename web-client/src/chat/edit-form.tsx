/** Edits the viewer's message in place. */
import { useEffect, useRef, useState } from "react";
import { Button } from "../ui/button";
import { MentionField } from "../ui/mentions";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import type { Message } from "./operations";
import type { TopicView } from "./topic-view";

export function EditForm({
  message,
  topicView,
  onDone,
}: {
  message: Message;
  topicView: TopicView;
  onDone: () => void;
}) {
  const { t } = useTranslation();
  const [text, setText] = useState(message.text);
  const [isSaving, setIsSaving] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(field.current.value.length, field.current.value.length);
  }, []);

  async function save() {
    if (!text.trim() || text === message.text) return onDone();
    setIsSaving(true);
    try {
      await topicView.edit(message.id, text.trim());
      onDone();
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
        maxLength={4000}
        onKeyDown={(event) => event.key === "Escape" && onDone()}
      />
      <div className="flex gap-2">
        <Button type="submit" kind="main" disabled={isSaving || !text.trim()}>
          {t("save")}
        </Button>
        <Button onClick={onDone}>{t("cancel")}</Button>
      </div>
    </form>
  );
}

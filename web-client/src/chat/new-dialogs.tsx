/** Dialogs for a new community and a new topic. */
import { type FormEvent, type ReactNode, useState } from "react";
import { useMutation } from "urql";
import { LIMITS } from "../api/limits";
import { navigate } from "../app/router";
import type { Visibility } from "../moderation/operations";
import { VisibilityField } from "../moderation/visibility-field";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { useLength } from "../ui/length";
import { useTranslation } from "../ui/preferences";
import { excessOf } from "../ui/text-length";
import { notifyFailure } from "../ui/toasts";
import { CreateCommunity, CreateTopic } from "./operations";

export function NewTopicDialog({ communityId, onClose }: { communityId: string; onClose: () => void }) {
  const { t } = useTranslation();
  const [key] = useState(() => crypto.randomUUID());
  const [{ fetching }, create] = useMutation(CreateTopic);
  const [title, setTitle] = useState("");
  async function submit() {
    const { data, error } = await create({
      input: { communityId, title: title.trim(), idempotencyKey: key },
    });
    if (error) return notifyFailure(error);
    onClose();
    if (data) navigate({ name: "topic", id: data.createTopic.id, at: null });
  }
  return (
    <FormDialog
      title={t("topic.new")}
      action={t("create")}
      canSubmit={!!title.trim() && excessOf(title, LIMITS.topicTitle) <= 0 && !fetching}
      submit={submit}
      onClose={onClose}
    >
      <Field label={t("topic.title")} value={title} onChange={setTitle} limit={LIMITS.topicTitle} />
    </FormDialog>
  );
}

export function NewCommunityDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const [key] = useState(() => crypto.randomUUID());
  const [{ fetching }, create] = useMutation(CreateCommunity);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [visibility, setVisibility] = useState<Visibility>("PUBLIC");
  const isTooLong =
    excessOf(name, LIMITS.communityName) > 0 || excessOf(description, LIMITS.communityDescription) > 0;
  async function submit() {
    const { error } = await create({
      input: { name: name.trim(), description, visibility, idempotencyKey: key },
    });
    if (error) return notifyFailure(error);
    onClose();
  }
  return (
    <FormDialog
      title={t("community.new")}
      action={t("create")}
      canSubmit={!!name.trim() && !isTooLong && !fetching}
      submit={submit}
      onClose={onClose}
    >
      <Field label={t("community.name")} value={name} onChange={setName} limit={LIMITS.communityName} />
      <Field
        label={t("community.description")}
        value={description}
        onChange={setDescription}
        limit={LIMITS.communityDescription}
      />
      <VisibilityField value={visibility} onChange={setVisibility} />
    </FormDialog>
  );
}

interface FormDialogProps {
  title: string;
  action: string;
  canSubmit: boolean;
  submit: () => void;
  onClose: () => void;
  children: ReactNode;
}

function FormDialog({ title, action, canSubmit, submit, onClose, children }: FormDialogProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          if (canSubmit) submit();
        }}
      >
        {children}
        <Button type="submit" kind="main" disabled={!canSubmit} className="self-end">
          {action}
        </Button>
      </form>
    </Dialog>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  limit: number;
}

function Field({ label, value, onChange, limit }: FieldProps) {
  const length = useLength(value, limit);
  return (
    <label className="flex flex-col gap-1">
      <span className="text-sm font-medium">{label}</span>
      <input
        className="field"
        value={value}
        onChange={(event) => onChange(event.target.value)}
        {...length.fieldProps}
      />
      {length.note}
    </label>
  );
}

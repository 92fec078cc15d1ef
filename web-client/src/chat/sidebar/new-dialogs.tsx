/** Dialogs for a new community and a new topic. */
import { useState } from "react";
import { useMutation } from "urql";
import { LIMITS } from "../../api/limits";
import { navigate } from "../../app/router";
import type { CommunityVisibility } from "../../moderation/operations";
import { VisibilityField } from "../../moderation/visibility-field";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { useLength } from "../../ui/fields/length";
import { excessOf } from "../../ui/fields/text-length";
import { useTranslation } from "../../ui/preferences";
import { CreateCommunity, CreateTopic } from "../operations";

export function NewTopicDialog({ communityId, onClose }: { communityId: string; onClose: () => void }) {
  const { t } = useTranslation();
  const [key] = useState(() => crypto.randomUUID());
  const [, create] = useMutation(CreateTopic);
  const [title, setTitle] = useState("");
  async function submit() {
    const { data, error } = await create({
      input: { communityId, title: title.trim(), idempotencyKey: key },
    });
    if (error) throw error;
    onClose();
    if (data) navigate({ name: "topic", id: data.createTopic.id, at: null });
  }
  return (
    <FormDialog
      title={t("topic.new")}
      action={t("create")}
      canSubmit={!!title.trim() && excessOf(title, LIMITS.topicTitle) <= 0}
      submit={submit}
      onClose={onClose}
    >
      <TextField label={t("topic.title")} value={title} onChange={setTitle} limit={LIMITS.topicTitle} />
    </FormDialog>
  );
}

export function NewCommunityDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const [key] = useState(() => crypto.randomUUID());
  const [, create] = useMutation(CreateCommunity);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [visibility, setVisibility] = useState<CommunityVisibility>("PUBLIC");
  const isTooLong =
    excessOf(name, LIMITS.communityName) > 0 || excessOf(description, LIMITS.communityDescription) > 0;
  async function submit() {
    const { error } = await create({
      input: { name: name.trim(), description, visibility, idempotencyKey: key },
    });
    if (error) throw error;
    onClose();
  }
  return (
    <FormDialog
      title={t("community.new")}
      action={t("create")}
      canSubmit={!!name.trim() && !isTooLong}
      submit={submit}
      onClose={onClose}
    >
      <TextField label={t("community.name")} value={name} onChange={setName} limit={LIMITS.communityName} />
      <TextField
        label={t("community.description")}
        value={description}
        onChange={setDescription}
        limit={LIMITS.communityDescription}
      />
      <VisibilityField value={visibility} onChange={setVisibility} />
    </FormDialog>
  );
}

interface TextFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  limit: number;
}

function TextField({ label, value, onChange, limit }: TextFieldProps) {
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

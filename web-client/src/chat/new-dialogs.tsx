/** Dialogs for a new community and a new topic. */
import { type FormEvent, type ReactNode, useState } from "react";
import { useMutation } from "urql";
import { navigate } from "../app/router";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import { CreateCommunity, CreateTopic } from "./operations";

export function NewTopic({ communityId, onClose }: { communityId: string; onClose: () => void }) {
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
    <Form
      title={t("topic.new")}
      action={t("create")}
      ready={!!title.trim() && !fetching}
      submit={submit}
      onClose={onClose}
    >
      <Field label={t("topic.title")} value={title} onChange={setTitle} length_max={200} />
    </Form>
  );
}

export function NewCommunity({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const [key] = useState(() => crypto.randomUUID());
  const [{ fetching }, create] = useMutation(CreateCommunity);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  async function submit() {
    const { error } = await create({ input: { name: name.trim(), description, idempotencyKey: key } });
    if (error) return notifyFailure(error);
    onClose();
  }
  return (
    <Form
      title={t("community.new")}
      action={t("create")}
      ready={!!name.trim() && !fetching}
      submit={submit}
      onClose={onClose}
    >
      <Field label={t("community.name")} value={name} onChange={setName} length_max={100} />
      <Field
        label={t("community.description")}
        value={description}
        onChange={setDescription}
        length_max={2000}
      />
    </Form>
  );
}

interface FormProps {
  title: string;
  action: string;
  ready: boolean;
  submit: () => void;
  onClose: () => void;
  children: ReactNode;
}

function Form({ title, action, ready, submit, onClose, children }: FormProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          if (ready) submit();
        }}
      >
        {children}
        <Button type="submit" kind="main" disabled={!ready} className="self-end">
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
  length_max: number;
}

function Field({ label, value, onChange, length_max }: FieldProps) {
  return (
    <label className="flex flex-col gap-1">
      <span className="text-sm font-medium">{label}</span>
      <input
        className="field"
        value={value}
        maxLength={length_max}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

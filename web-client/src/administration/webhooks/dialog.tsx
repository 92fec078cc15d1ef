/** The dialog that creates or changes a webhook. What the server refuses is shown beside its field. */
import { useEffect, useRef, useState } from "react";
import { request, useApi } from "../../api/api";
import { LIMITS } from "../../api/limits";
import { hrefOf } from "../../app/router";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useLength } from "../../ui/fields/length";
import { SelectField } from "../../ui/fields/select-field";
import { useTranslation } from "../../ui/preferences";
import { type Choices, useChoices } from "./choices";
import { EventTypeField } from "./event-type-field";
import { eventTypeName, withoutUnreadable } from "./event-types";
import {
  type FieldRefusal,
  FORMATS,
  formOf,
  idsOf,
  refusalOf,
  type WebhookField,
  type WebhookForm,
} from "./form";
import { LimitFields } from "./limit-fields";
import { CreateWebhook, type IssuedWebhook, UpdateWebhook, type Webhook } from "./operations";

interface Props {
  /** The webhook to change; null for a new one. */
  webhook: Webhook | null;
  onClose: () => void;
  /** Called with the webhook; its secret is null if it was changed, or if the request was repeated. */
  onSaved: (saved: IssuedWebhook) => void;
}

export function WebhookDialog({ webhook, onClose, onSaved }: Props) {
  const { t } = useTranslation();
  const [form, setForm] = useState(() => formOf(webhook));
  const choices = useChoices();
  const length = useLength(form.name, LIMITS.webhookName);
  const { refusal, save } = useSave(webhook, onSaved);
  const errorOf = useErrorOf(refusal, choices);
  const fields = useFocusOnRefusal(refusal);
  const change = (part: Partial<WebhookForm>) => setForm((before) => ({ ...before, ...part }));

  const key = choices?.keys.find(({ id }) => id === form.keyId);
  // Until the keys are loaded, and for a key that has ended, the chosen types stay.
  const eventTypes = key ? withoutUnreadable(form.eventTypes, key.scopes) : form.eventTypes;
  const hasTexts = form.name.trim() !== "" && !length.isTooLong && form.url.trim() !== "";

  return (
    <FormDialog
      title={webhook ? t("webhooks.editNamed", { name: webhook.name }) : t("webhooks.new")}
      action={t(webhook ? "save" : "create")}
      canSubmit={hasTexts && form.keyId !== null && eventTypes.length > 0}
      submit={() => save({ ...form, eventTypes })}
      onClose={onClose}
    >
      <div ref={fields} className="flex flex-col gap-4">
        <LabelledField label={t("webhooks.name")} length={length} error={errorOf("name")}>
          {(props) => (
            <input
              {...props}
              className="field"
              value={form.name}
              onChange={({ target }) => change({ name: target.value })}
            />
          )}
        </LabelledField>
        <LabelledField label={t("webhooks.address")} hint={t("webhooks.addressHint")} error={errorOf("url")}>
          {(props) => (
            <input
              {...props}
              className="field font-mono text-sm"
              inputMode="url"
              autoComplete="off"
              spellCheck={false}
              value={form.url}
              onChange={({ target }) => change({ url: target.value })}
            />
          )}
        </LabelledField>
        <SelectField
          label={t("webhooks.format")}
          hint={t(`webhooks.formatHint.${form.format}`)}
          value={form.format}
          values={FORMATS}
          textOf={(each) => t(`webhooks.format.${each}`)}
          onChange={(format) => change({ format })}
        />
        <KeyField
          choices={choices}
          account={webhook?.account ?? null}
          keyId={form.keyId}
          error={errorOf("serviceKeyId")}
          onChange={(keyId) => change({ keyId })}
        />
        <EventTypeField
          types={eventTypes}
          scopes={key?.scopes ?? null}
          error={errorOf("eventTypes")}
          onChange={(chosen) => change({ eventTypes: chosen })}
        />
        <LimitFields form={form} choices={choices} errorOf={errorOf} onChange={change} />
      </div>
    </FormDialog>
  );
}

interface KeyFieldProps {
  choices: Choices | null;
  /** The account of the webhook, which can't be changed; null for a new webhook. */
  account: Webhook["account"] | null;
  keyId: string | null;
  error: string | null;
  onChange: (keyId: string | null) => void;
}

function KeyField({ choices, account, keyId, error, onChange }: KeyFieldProps) {
  const { t } = useTranslation();
  const keys = account ? [account] : (choices?.keys ?? []);
  const hint = choices?.keys.length === 0 ? t("webhooks.keysNone") : t("webhooks.keyHint");
  return (
    <SelectField
      label={t("webhooks.key")}
      hint={
        <>
          {hint}{" "}
          <a href={hrefOf({ name: "adminKeys" })} className="text-accent underline">
            {t("webhooks.keyManage")}
          </a>
        </>
      }
      error={error}
      value={keyId}
      values={keys.map(({ id }) => id)}
      textOf={(each) => keys.find(({ id }) => id === each)?.name ?? each}
      emptyText={account ? undefined : t("webhooks.keyNone")}
      onChange={onChange}
    />
  );
}

/** Returns a function that stores the form, and the refusal of a field. It throws other errors. */
function useSave(webhook: Webhook | null, onSaved: Props["onSaved"]) {
  const { direct } = useApi();
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const [refusal, setRefusal] = useState<FieldRefusal | null>(null);

  async function send({ name, url, format, keyId, ...lists }: WebhookForm): Promise<IssuedWebhook> {
    const input = {
      name: name.trim(),
      url: url.trim(),
      format,
      eventTypes: [...lists.eventTypes],
      communityIds: [...lists.communityIds],
      topicIds: idsOf(lists.topicIds),
      jobIds: idsOf(lists.jobIds),
    };
    if (webhook) {
      const changed = await request(direct, UpdateWebhook, { input: { webhookId: webhook.id, ...input } });
      return { webhook: changed.updateWebhook, secret: null };
    }
    const created = { ...input, serviceKeyId: keyId, idempotencyKey };
    return (await request(direct, CreateWebhook, { input: created })).createWebhook;
  }

  async function save(form: WebhookForm) {
    setRefusal(null);
    try {
      onSaved(await send(form));
    } catch (error) {
      const { eventTypes, communityIds } = form;
      const sent = { eventTypes, communityIds, topicIds: idsOf(form.topicIds), jobIds: idsOf(form.jobIds) };
      const refused = refusalOf(error, sent);
      if (!refused) throw error;
      setRefusal(refused);
    }
  }
  return { refusal, save };
}

/** Returns the reference of the fields. A refused field gets the focus, and comes into view with its error. */
function useFocusOnRefusal(refusal: FieldRefusal | null) {
  const fields = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!refusal) return;
    fields.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    fields.current?.querySelector('[role="alert"]')?.scrollIntoView({ block: "center" });
  }, [refusal]);
  return fields;
}

/** Returns a function that returns why a field was refused; null if it was not. */
function useErrorOf(refusal: FieldRefusal | null, choices: Choices | null) {
  const { t } = useTranslation();
  function subjectOf(field: WebhookField, item: string): string {
    if (field === "eventTypes") return eventTypeName(item, t);
    return choices?.communities.find(({ id }) => id === item)?.name ?? item;
  }
  return (field: WebhookField): string | null => {
    if (refusal?.field !== field) return null;
    const { item, expected } = refusal;
    return item === null
      ? t("webhooks.expected", { expected })
      : t("webhooks.expectedOf", { subject: subjectOf(field, item), expected });
  };
}

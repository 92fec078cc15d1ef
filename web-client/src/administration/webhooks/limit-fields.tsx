/** The fields that limit a webhook to the events of certain communities, topics and jobs. */
import { useId, useState } from "react";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useTranslation } from "../../ui/preferences";
import { CheckBox, withItem } from "./check-box";
import type { Choices } from "./choices";
import type { WebhookField, WebhookForm } from "./form";

interface Props {
  form: WebhookForm;
  choices: Choices | null;
  errorOf: (field: WebhookField) => string | null;
  onChange: (part: Partial<WebhookForm>) => void;
}

export function LimitFields({ form, choices, errorOf, onChange }: Props) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(
    form.communityIds.length > 0 || form.topicIds !== "" || form.jobIds !== "",
  );
  const error = errorOf("communityIds") ?? errorOf("topicIds") ?? errorOf("jobIds");
  return (
    <details
      open={isOpen || error !== null}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
      className="rounded-card border border-line px-3 py-2"
    >
      <summary className="font-medium">{t("webhooks.limits")}</summary>
      <div className="mt-2 flex flex-col gap-4">
        <p className="text-sm text-quiet">{t("webhooks.limitsHint")}</p>
        <CommunityField
          chosen={form.communityIds}
          communities={choices?.communities ?? []}
          error={errorOf("communityIds")}
          onChange={(communityIds) => onChange({ communityIds })}
        />
        <IdsField
          label={t("webhooks.topics")}
          value={form.topicIds}
          error={errorOf("topicIds")}
          onChange={(topicIds) => onChange({ topicIds })}
        />
        <IdsField
          label={t("webhooks.jobs")}
          value={form.jobIds}
          error={errorOf("jobIds")}
          onChange={(jobIds) => onChange({ jobIds })}
        />
      </div>
    </details>
  );
}

interface CommunityFieldProps {
  chosen: readonly string[];
  communities: Choices["communities"];
  error: string | null;
  onChange: (ids: readonly string[]) => void;
}

/** Offers the communities that the viewer sees, and others that were chosen before by their ids. */
function CommunityField({ chosen, communities, error, onChange }: CommunityFieldProps) {
  const { t } = useTranslation();
  const id = useId();
  const others = chosen.filter((each) => !communities.some((community) => community.id === each));
  const offered = [...communities, ...others.map((each) => ({ id: each, name: each }))];
  if (offered.length === 0) return null;
  return (
    <fieldset aria-describedby={error ? id : undefined} className="min-w-0">
      <legend className="mb-1 text-sm font-medium">{t("webhooks.communities")}</legend>
      {error && (
        <p id={id} role="alert" className="mb-1 text-sm text-bad">
          {error}
        </p>
      )}
      <div className="thin-scroll max-h-40 overflow-y-auto rounded-xl border border-line px-3 py-1">
        {offered.map((community) => (
          <CheckBox
            key={community.id}
            isChecked={chosen.includes(community.id)}
            onChange={(isChecked) => onChange(withItem(chosen, community.id, isChecked))}
          >
            {community.name}
          </CheckBox>
        ))}
      </div>
    </fieldset>
  );
}

interface IdsFieldProps {
  label: string;
  value: string;
  error: string | null;
  onChange: (text: string) => void;
}

function IdsField({ label, value, error, onChange }: IdsFieldProps) {
  const { t } = useTranslation();
  return (
    <LabelledField label={label} hint={t("webhooks.idsHint")} error={error}>
      {(props) => (
        <textarea
          {...props}
          rows={2}
          className="field font-mono text-sm"
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </LabelledField>
  );
}

/** The field for the types of events that a webhook sends. Types that its service key may not read can't be chosen. */
import { useId } from "react";
import { useTranslation } from "../../ui/preferences";
import { CheckBox, withItem } from "./check-box";
import { EVENT_AREAS, eventTypeName, readableTypes } from "./event-types";

interface Props {
  types: readonly string[];
  /** The scopes of the service key; null without a key. */
  scopes: readonly string[] | null;
  error: string | null;
  onChange: (types: readonly string[]) => void;
}

export function EventTypeField({ types, scopes, error, onChange }: Props) {
  const { t } = useTranslation();
  const id = useId();
  const readable = readableTypes(scopes ?? []);
  const isAll = readable.length > 0 && readable.every((type) => types.includes(type));
  return (
    <fieldset aria-describedby={error ? id : undefined} className="min-w-0">
      <legend className="mb-1 text-sm font-medium">{t("webhooks.eventTypes")}</legend>
      {error && (
        <p id={id} role="alert" className="text-sm text-bad">
          {error}
        </p>
      )}
      <CheckBox
        isChecked={isAll}
        isDisabled={readable.length === 0}
        onChange={(isChecked) => onChange(isChecked ? readable : [])}
      >
        {t("webhooks.typesAll")}
      </CheckBox>
      {EVENT_AREAS.map(({ area, scope, types: areaTypes }) => (
        <EventArea
          key={area}
          title={t(`webhooks.area.${area}`)}
          missingScope={scopes && !scopes.includes(scope) ? scope : null}
          isDisabled={!scopes?.includes(scope)}
          areaTypes={areaTypes}
          types={types}
          onChange={onChange}
        />
      ))}
    </fieldset>
  );
}

interface EventAreaProps {
  title: string;
  /** The scope that the key lacks; null if it has it, or without a key. */
  missingScope: string | null;
  isDisabled: boolean;
  areaTypes: readonly string[];
  types: readonly string[];
  onChange: (types: readonly string[]) => void;
}

function EventArea({ title, missingScope, isDisabled, areaTypes, types, onChange }: EventAreaProps) {
  const { t } = useTranslation();
  return (
    <fieldset className="mt-2 min-w-0">
      <legend className="text-sm text-quiet">
        {title}
        {missingScope && <> · {t("webhooks.lacksScope", { scope: missingScope })}</>}
      </legend>
      <div className="grid gap-x-4 sm:grid-cols-2">
        {areaTypes.map((type) => (
          <CheckBox
            key={type}
            isChecked={types.includes(type)}
            isDisabled={isDisabled}
            onChange={(isChecked) => onChange(withItem(types, type, isChecked))}
          >
            {eventTypeName(type, t)}
            <span className="block font-mono text-xs text-quiet">{type}</span>
          </CheckBox>
        ))}
      </div>
    </fieldset>
  );
}

/** The dialog for a new service key: its name, what it may be used for, and when it expires. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import { LIMITS } from "../../api/limits";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useLength } from "../../ui/fields/length";
import { useTranslation } from "../../ui/preferences";
import type { IssuedKey } from "./list";
import { CreateServiceKey } from "./operations";
import { actionOf, SCOPES, scopesByArea } from "./scopes";

interface Props {
  onClose: () => void;
  onIssued: (issued: IssuedKey) => void;
}

export function CreateServiceKeyDialog({ onClose, onIssued }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly string[]>([]);
  const [lastDay, setLastDay] = useState("");
  const length = useLength(name, LIMITS.keyName);
  const canCreate = name.trim() !== "" && !length.isTooLong && scopes.length > 0;

  async function create() {
    // The key is valid until the end of the last day, in the browser's time zone.
    const expiresAt = lastDay ? new Date(`${lastDay}T23:59:59`).toISOString() : null;
    const input = { name: name.trim(), scopes: [...scopes], expiresAt, idempotencyKey };
    onIssued((await request(direct, CreateServiceKey, { input })).createServiceKey);
  }

  return (
    <FormDialog
      title={t("keys.new")}
      action={t("create")}
      canSubmit={canCreate}
      submit={create}
      onClose={onClose}
    >
      <LabelledField label={t("keys.name")} hint={t("keys.nameHint")} length={length}>
        {(props) => (
          <input
            {...props}
            className="field"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </LabelledField>
      <ScopeField scopes={scopes} onChange={setScopes} />
      <LabelledField label={t("keys.lastDay")} hint={t("keys.lastDayHint")}>
        {(props) => (
          <input
            {...props}
            type="date"
            className="field"
            value={lastDay}
            onChange={(event) => setLastDay(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}

interface ScopeFieldProps {
  scopes: readonly string[];
  onChange: (scopes: readonly string[]) => void;
}

function ScopeField({ scopes, onChange }: ScopeFieldProps) {
  const { t } = useTranslation();
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-medium">{t("keys.scopes")}</legend>
      <div className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4">
        {scopesByArea(SCOPES).map(([area, areaScopes]) => (
          <div key={area} className="contents">
            <span className="py-1 font-mono text-sm text-quiet">{area}</span>
            <span className="flex flex-wrap gap-x-4">
              {areaScopes.map((scope) => (
                <label key={scope} className="flex min-h-8 cursor-pointer items-center gap-2">
                  <input
                    type="checkbox"
                    className="size-4 accent-accent"
                    aria-label={scope}
                    checked={scopes.includes(scope)}
                    onChange={(event) =>
                      onChange(
                        event.target.checked ? [...scopes, scope] : scopes.filter((each) => each !== scope),
                      )
                    }
                  />
                  <span className="font-mono text-sm">{actionOf(scope)}</span>
                </label>
              ))}
            </span>
          </div>
        ))}
      </div>
    </fieldset>
  );
}

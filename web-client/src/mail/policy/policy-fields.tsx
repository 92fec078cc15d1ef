/** The fields of a mail policy. Without `onChange` they only show it. */
import { LabelledField } from "../../ui/fields/labelled-field";
import { useTranslation } from "../../ui/preferences";
import { NUMBERS, numberOf, type PolicyForm, type PolicyNumber, TREATMENTS, withTreatment } from "./form";

interface Props {
  form: PolicyForm;
  onChange?: (form: PolicyForm) => void;
}

export function PolicyFields({ form, onChange }: Props) {
  return (
    <div className="flex flex-col gap-6">
      <TreatmentTable form={form} {...(onChange && { onChange })} />
      <div className="grid gap-4 sm:grid-cols-2">
        {NUMBERS.map((number) => (
          <NumberField key={number.name} number={number} form={form} {...(onChange && { onChange })} />
        ))}
      </div>
      <Choice name="complaintsBlock" form={form} {...(onChange && { onChange })} />
      <Choice name="keepAddresses" form={form} {...(onChange && { onChange })} />
    </div>
  );
}

function Choice({ name, form, onChange }: Props & { name: "complaintsBlock" | "keepAddresses" }) {
  const { t } = useTranslation();
  return (
    <label className="flex items-baseline gap-2">
      <input
        type="checkbox"
        disabled={!onChange}
        checked={form[name]}
        onChange={(event) => onChange?.({ ...form, [name]: event.target.checked })}
      />
      <span>
        {t(`policy.${name}`)}
        {name === "keepAddresses" && (
          <span className="block text-sm text-quiet">{t("policy.keepAddressesHint")}</span>
        )}
      </span>
    </label>
  );
}

function TreatmentTable({ form, onChange }: Props) {
  const { t } = useTranslation();
  return (
    <table className="w-full max-w-xl">
      <thead className="text-sm text-quiet">
        <tr>
          <th className="py-1.5 text-left font-medium">{t("policy.class")}</th>
          <th className="py-1.5 pl-3 text-left font-medium">{t("policy.treatment")}</th>
        </tr>
      </thead>
      <tbody>
        {form.treatments.map(({ bounceClass, treatment }) => (
          <tr key={bounceClass} className="border-t border-line">
            <th scope="row" className="py-1.5 text-left font-normal">
              {t(`bounce.${bounceClass}`)}
            </th>
            <td className="py-1.5 pl-3">
              <select
                className="field"
                aria-label={`${t("policy.treatment")}: ${t(`bounce.${bounceClass}`)}`}
                disabled={!onChange}
                value={treatment}
                onChange={({ target }) => {
                  const chosen = TREATMENTS.find((each) => each === target.value);
                  if (chosen) onChange?.(withTreatment(form, bounceClass, chosen));
                }}
              >
                {TREATMENTS.map((each) => (
                  <option key={each} value={each}>
                    {t(`policy.treatment.${each}`)}
                  </option>
                ))}
              </select>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function NumberField({ number, form, onChange }: Props & { number: PolicyNumber }) {
  const { t } = useTranslation();
  const { name, min, max } = number;
  const hint =
    name === "softWindowDays" || name === "softBlockDays"
      ? t(`policy.optional.${name}`)
      : t("policy.range", { min, max });
  return (
    <LabelledField label={t(`policy.${name}`)} hint={hint}>
      {(props) => (
        <input
          {...props}
          {...(numberOf(form, number) === undefined && { "aria-invalid": true })}
          className="field tabular-nums disabled:opacity-70"
          inputMode="numeric"
          autoComplete="off"
          disabled={!onChange}
          value={form.numbers[name]}
          onChange={({ target }) =>
            onChange?.({ ...form, numbers: { ...form.numbers, [name]: target.value } })
          }
        />
      )}
    </LabelledField>
  );
}

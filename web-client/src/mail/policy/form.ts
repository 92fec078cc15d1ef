/** The form of a mail policy: texts of its fields, and the input of the API. */
import type { MailPolicy, MailPolicyInput } from "./operations";

type Treatments = MailPolicy["treatments"];
export type BounceClass = Treatments[number]["bounceClass"];
export type BounceTreatment = Treatments[number]["treatment"];

export const TREATMENTS: readonly BounceTreatment[] = ["HARD", "SOFT", "IGNORED"];

/** The numbers of a policy, with the server's bounds. An optional one may be empty. */
export const NUMBERS = [
  { name: "hardBounces", min: 1, max: 10, isOptional: false },
  { name: "softBounceDays", min: 1, max: 14, isOptional: false },
  { name: "softWindowDays", min: 1, max: 365, isOptional: true },
  { name: "softBlockDays", min: 1, max: 365, isOptional: true },
] as const;
export type PolicyNumber = (typeof NUMBERS)[number];

export interface PolicyForm {
  treatments: Treatments;
  numbers: Record<PolicyNumber["name"], string>;
  complaintsBlock: boolean;
  keepAddresses: boolean;
}

export function formOf(policy: MailPolicy): PolicyForm {
  const text = (value: number | null) => (value === null ? "" : String(value));
  return {
    treatments: policy.treatments.map(({ bounceClass, treatment }) => ({ bounceClass, treatment })),
    numbers: {
      hardBounces: text(policy.hardBounces),
      softBounceDays: text(policy.softBounceDays),
      softWindowDays: text(policy.softWindowDays),
      softBlockDays: text(policy.softBlockDays),
    },
    complaintsBlock: policy.complaintsBlock,
    keepAddresses: policy.keepAddresses,
  };
}

/** Returns a typed number; null if it is empty and optional; undefined if it is not valid. */
export function numberOf(form: PolicyForm, { name, min, max, isOptional }: PolicyNumber) {
  const digits = form.numbers[name].trim();
  if (digits === "") return isOptional ? null : undefined;
  const value = Number(digits);
  const isValid = /^\d+$/.test(digits) && value >= min && value <= max;
  if (!isValid) return undefined;
  // No window is shorter than the days on which soft bounces block.
  if (name === "softWindowDays" && value < Number(form.numbers.softBounceDays)) return undefined;
  return value;
}

/** Returns the input of the whole policy; null if a field is not valid. */
export function inputOf(form: PolicyForm): MailPolicyInput | null {
  const [hardBounces, softBounceDays, softWindowDays, softBlockDays] = NUMBERS.map((number) =>
    numberOf(form, number),
  );
  if ([hardBounces, softBounceDays, softWindowDays, softBlockDays].includes(undefined)) return null;
  return {
    treatments: [...form.treatments],
    hardBounces: hardBounces ?? null,
    softBounceDays: softBounceDays ?? null,
    softWindowDays: softWindowDays ?? null,
    softBlockDays: softBlockDays ?? null,
    complaintsBlock: form.complaintsBlock,
    keepAddresses: form.keepAddresses,
  };
}

/** Returns whether two forms mean the same policy. Spaces and leading zeros don't matter. */
export function isSamePolicy(one: PolicyForm, other: PolicyForm): boolean {
  const input = inputOf(one);
  return input !== null && JSON.stringify(input) === JSON.stringify(inputOf(other));
}

export function withTreatment(
  form: PolicyForm,
  bounceClass: BounceClass,
  treatment: BounceTreatment,
): PolicyForm {
  const treatments = form.treatments.map((entry) =>
    entry.bounceClass === bounceClass ? { bounceClass, treatment } : entry,
  );
  return { ...form, treatments };
}

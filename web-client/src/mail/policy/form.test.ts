import { expect, test } from "vitest";
import { formOf, inputOf, isSamePolicy, NUMBERS, numberOf, type PolicyForm, withTreatment } from "./form";

const POLICY = {
  version: 0,
  treatments: [
    { bounceClass: "NO_MAILBOX", treatment: "HARD" },
    { bounceClass: "FULL", treatment: "SOFT" },
  ],
  hardBounces: 1,
  softBounceDays: 3,
  softWindowDays: null,
  softBlockDays: null,
  complaintsBlock: true,
  keepAddresses: true,
  reason: null,
  setAt: null,
  setBy: null,
} satisfies Parameters<typeof formOf>[0];

const FORM = formOf(POLICY);
const withNumbers = (numbers: Partial<PolicyForm["numbers"]>): PolicyForm => ({
  ...FORM,
  numbers: { ...FORM.numbers, ...numbers },
});

test("the form of a policy gives the input of the same policy", () => {
  expect(inputOf(FORM)).toEqual({
    treatments: POLICY.treatments,
    hardBounces: 1,
    softBounceDays: 3,
    softWindowDays: null,
    softBlockDays: null,
    complaintsBlock: true,
    keepAddresses: true,
  });
});

test("numbers outside the bounds, empty required ones and other texts are not valid", () => {
  const [hardBounces] = NUMBERS;
  for (const text of ["", "0", "11", "-1", "1.5", "1e1", "many"])
    expect(numberOf(withNumbers({ hardBounces: text }), hardBounces), text).toBeUndefined();
  expect(numberOf(withNumbers({ hardBounces: " 10 " }), hardBounces)).toBe(10);
  expect(inputOf(withNumbers({ hardBounces: "11" }))).toBeNull();
});

test("a window is not shorter than the days that block", () => {
  expect(inputOf(withNumbers({ softBounceDays: "3", softWindowDays: "2" }))).toBeNull();
  expect(inputOf(withNumbers({ softBounceDays: "3", softWindowDays: "3" }))?.softWindowDays).toBe(3);
});

test("another treatment is another policy, and a leading zero is not", () => {
  expect(isSamePolicy(withNumbers({ hardBounces: "01" }), FORM)).toBe(true);
  const ignoring = withTreatment(FORM, "FULL", "IGNORED");
  expect(isSamePolicy(ignoring, FORM)).toBe(false);
  expect(isSamePolicy(withTreatment(ignoring, "FULL", "SOFT"), FORM)).toBe(true);
});

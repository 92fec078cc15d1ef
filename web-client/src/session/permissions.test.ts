import { expect, test } from "vitest";
import { OPERATOR_SCREENS, SCREENS, visibleScreens } from "../app/screens";
import { mayAdminister, mayLimitCalls, mayOperate, mayReadMail } from "./permissions";

test("an administrator may do all that other roles may do", () => {
  for (const may of [mayAdminister, mayOperate, mayReadMail, mayLimitCalls])
    expect(may(["ADMIN"])).toBe(true);
  expect(visibleScreens([...SCREENS, ...OPERATOR_SCREENS], ["ADMIN"])).toHaveLength(7);
});

test("operators may not administer or limit calls, services may only read mail, members may do none of this", () => {
  expect(mayAdminister(["MEMBER", "OPERATOR", "SERVICE"])).toBe(false);
  expect([mayOperate(["OPERATOR"]), mayReadMail(["OPERATOR"]), mayLimitCalls(["OPERATOR"])]).toEqual([
    true,
    true,
    false,
  ]);
  expect([mayOperate(["SERVICE"]), mayReadMail(["SERVICE"])]).toEqual([false, true]);
  expect([mayOperate(["MEMBER"]), mayReadMail(["MEMBER"]), mayLimitCalls(["MEMBER"])]).toEqual([
    false,
    false,
    false,
  ]);
});

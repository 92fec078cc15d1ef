import { expect, test } from "vitest";
import { isHandle, typedHandle } from "./handles";

test("a typed handle may begin with @, and have capital or full-width letters", () => {
  for (const typed of ["hana_2", "@hana_2", " Hana_2 ", "＠ＨＡＮＡ＿２"])
    expect(typedHandle(typed)).toBe("hana_2");
});

test("a handle has 1 to 30 letters a to z, digits and underscores, and is not me", () => {
  for (const handle of ["a", "7", "_", "men", "x".repeat(30)]) expect(isHandle(handle), handle).toBe(true);
  for (const handle of ["", "me", "ann-2", "a b", "はな", "é", "a\n", "x".repeat(31)])
    expect(isHandle(handle), handle).toBe(false);
});

import { expect, test } from "vitest";
import { indented } from "./request-text";

test("JSON is indented, and a body that was cut stays as it is", () => {
  expect(indented('{"type":"MessagePosted"}')).toEqual({
    text: '{\n  "type": "MessagePosted"\n}',
    isJson: true,
  });
  expect(indented('{"type":"Mess')).toEqual({ text: '{"type":"Mess', isJson: false });
  expect(indented("")).toEqual({ text: "", isJson: false });
});

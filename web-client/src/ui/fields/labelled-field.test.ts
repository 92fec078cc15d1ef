import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { LabelledField } from "./labelled-field";

const LENGTH = {
  isTooLong: true,
  fieldProps: { "aria-invalid": true, "aria-describedby": "count" },
  note: createElement("span", { id: "count" }, "3 characters too long"),
} as const;

/** Returns the attributes of a field with this hint and check, by the names of the attributes. */
function attributesOf(props: { hint?: string; length?: typeof LENGTH }): Record<string, string> {
  const children = (fieldProps: object) => createElement("input", fieldProps);
  const html = renderToStaticMarkup(createElement(LabelledField, { label: "Name", children, ...props }));
  const [field = ""] = html.match(/<input [^>]*>/) ?? [];
  return Object.fromEntries(
    [...field.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  );
}

test("a field without hint and check has no description", () => {
  expect(attributesOf({})).not.toHaveProperty("aria-describedby");
});

test("a field with a hint and a check is described by both", () => {
  const { id, ...attributes } = attributesOf({ hint: "A short name.", length: LENGTH });
  expect(attributes).toEqual({ "aria-invalid": "true", "aria-describedby": `count ${id}-hint` });
});

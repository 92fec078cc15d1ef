import { expect, test } from "vitest";
import { addressesIn, domainsIn, invalidAddresses } from "./addresses";

test("addresses are found between all separators and in angle brackets, each once", () => {
  const text =
    "ann@example.org\r\nBen Lee <ben@example.org>, cat@example.com; ann@example.org dan@example.com\n\n";
  expect(addressesIn(text)).toEqual([
    "ann@example.org",
    "ben@example.org",
    "cat@example.com",
    "dan@example.com",
  ]);
});

test("each of several addresses with names on one line is found", () => {
  expect(addressesIn("Ann <ann@example.org> Ben Lee <ben@example.org>")).toEqual([
    "ann@example.org",
    "ben@example.org",
  ]);
});

test("an invalid address is kept, so that the server can report it", () => {
  expect(addressesIn("nobody,@x")).toEqual(["nobody", "@x"]);
});

test("an address counts as its domain", () => {
  expect(domainsIn("Example.org ann@example.com\nexample.com")).toEqual(["example.org", "example.com"]);
});

test("an address without a normalised form is invalid", () => {
  const standings = [
    { address: "Ann@Example.org", normalized: "ann@example.org" },
    { address: "nobody", normalized: null },
  ];
  expect(invalidAddresses(standings)).toEqual(["nobody"]);
});

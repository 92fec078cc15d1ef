import { expect, test } from "vitest";
import { firstRows, parseRows, valuesByLine } from "./csv";

test("each row has the number of its first line, with quotes, blank lines and all line endings", () => {
  const text = '\uFEFFphone_number,note\r\n+811,"a, ""b""\nc"\n\n+812,d\r+813,e';
  expect([...parseRows(text)]).toEqual([
    { line: 1, cells: ["phone_number", "note"] },
    { line: 2, cells: ["+811", 'a, "b"\nc'] },
    { line: 5, cells: ["+812", "d"] },
    { line: 6, cells: ["+813", "e"] },
  ]);
});

test("the value beside an error is the cell of its column, or the whole row", () => {
  const text = "name,phone_number\nAnn,12\nBen,+81";
  const rowErrors = [
    { row: 2, column: "phone_number" },
    { row: 3, column: null },
    { row: 9, column: null },
  ];
  expect([...valuesByLine(text, rowErrors)]).toEqual([
    [2, "12"],
    [3, "Ben,+81"],
  ]);
});

test("the preview is the header and the first rows", () => {
  const { columns, rows } = firstRows(" phone_number , name\n+811,Ann\n+812,Ben", 1);
  expect(columns).toEqual(["phone_number", "name"]);
  expect(rows).toEqual([{ line: 2, cells: ["+811", "Ann"] }]);
});

test.each([",", ";", "\t"])("a list separated by %j is read with its empty cells", (separator) => {
  const end = separator.repeat(2);
  const text = ` Phone_Number${separator}name${end}\n+811${separator}"a,b;c\td"${end}\n${separator}${end}\n`;
  const { columns, rows } = firstRows(text, 5);
  expect(columns).toEqual(["phone_number", "name"]);
  expect(rows).toEqual([{ line: 2, cells: ["+811", "a,b;c\td", "", ""] }]);
  const rowErrors = [{ row: 2, column: "phone_number" }];
  expect([...valuesByLine(text, rowErrors)]).toEqual([[2, "+811"]]);
});

test("a list of numbers only, and one with a wrong header, are read", () => {
  expect(firstRows("phone_number\n+811;a", 5).rows).toEqual([{ line: 2, cells: ["+811;a"] }]);
  expect(firstRows("phone;name\n+811;a", 5).columns).toEqual(["phone", "name"]);
});

/**
 * A minimal CSV reader. It previews a list of phone numbers, and finds the values that the server rejected, which are
 * shown next to the errors.
 */

export interface CsvRow {
  /** The number of the line on which the row begins. The header is on line 1. */
  line: number;
  cells: string[];
}

/** As on the server, which checks the list. */
const SEPARATORS = [",", ";", "\t"];
const PHONE_NUMBER = "phone_number";

/** Yields the rows that are not blank. Quoted cells may contain separators, line breaks and doubled quotes. */
export function* parseRows(text: string, separator = separatorOf(text)): Generator<CsvRow> {
  let line = 1;
  let rowLine = 1;
  let cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  const source = text.replace(/^\uFEFF/, "");
  const currentRow = () => ({ line: rowLine, cells: [...cells, cell] });
  const isBlank = () => [...cells, cell].every((value) => value.trim() === "");
  for (let index = 0; index < source.length; index++) {
    const character = source[index] as string;
    const isLineEnd = character === "\n" || character === "\r";
    if (character === "\r" && source[index + 1] === "\n") {
      if (isQuoted) cell += character;
      continue;
    }
    if (isLineEnd) line++;
    if (isQuoted) {
      if (character !== '"') cell += character;
      else if (source[index + 1] === '"') cell += source[++index];
      else isQuoted = false;
    } else if (character === '"' && cell === "") isQuoted = true;
    else if (character === separator) {
      cells.push(cell);
      cell = "";
    } else if (isLineEnd) {
      if (!isBlank()) yield currentRow();
      cells = [];
      cell = "";
      rowLine = line;
    } else cell += character;
  }
  if (!isBlank()) yield currentRow();
}

/** Returns the separator with which the header names the phone numbers, else the one with which it has most cells. */
function separatorOf(text: string): string {
  const headers = SEPARATORS.map((separator) => ({
    separator,
    names: columnNames(parseRows(text, separator).next().value?.cells ?? []),
  }));
  const withNumbers = headers.find(({ names }) => names.includes(PHONE_NUMBER));
  return (
    withNumbers ?? headers.reduce((most, each) => (each.names.length > most.names.length ? each : most))
  ).separator;
}

/** Returns the names in a header. Spreadsheet programs add empty cells at its end. */
function columnNames(cells: readonly string[]): string[] {
  const names = cells.map((name) => name.trim());
  const count = names.findLastIndex((name) => name !== "") + 1;
  return names.slice(0, count).map((name) => (name.toLowerCase() === PHONE_NUMBER ? PHONE_NUMBER : name));
}

/** Returns the header and the first rows after it. */
export function firstRows(text: string, count: number): { columns: string[]; rows: CsvRow[] } {
  const rows: CsvRow[] = [];
  for (const row of parseRows(text)) {
    rows.push(row);
    if (rows.length > count) break;
  }
  return { columns: columnNames(rows[0]?.cells ?? []), rows: rows.slice(1) };
}

/** Returns the invalid values by line: the cell of the error's column, or the whole row if no column is named. */
export function valuesByLine(
  text: string,
  rowErrors: readonly { row: number; column: string | null }[],
): Map<number, string> {
  const separator = separatorOf(text);
  const columnsByLine = new Map(rowErrors.map(({ row: line, column }) => [line, column]));
  const lastLine = Math.max(0, ...columnsByLine.keys());
  const values = new Map<number, string>();
  let columns: string[] | null = null;
  for (const { line, cells } of parseRows(text, separator)) {
    if (line > lastLine) break;
    columns ??= columnNames(cells);
    const column = columnsByLine.get(line);
    if (column === undefined) continue;
    values.set(line, column === null ? cells.join(separator) : (cells[columns.indexOf(column)] ?? ""));
  }
  return values;
}

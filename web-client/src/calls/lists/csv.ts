/**
 * A minimal CSV reader. It previews a list of phone numbers, and finds the values that the server rejected, which are
 * shown next to the errors.
 */

export interface CsvRow {
  /** The number of the line on which the row begins. The header is on line 1. */
  line: number;
  cells: string[];
}

/** Yields the rows that are not blank. Quoted cells may contain commas, line breaks and doubled quotes. */
export function* parseRows(text: string): Generator<CsvRow> {
  let line = 1;
  let rowLine = 1;
  let cells: string[] = [];
  let cell = "";
  let isQuoted = false;
  const source = text.replace(/^\uFEFF/, "");
  const currentRow = () => ({ line: rowLine, cells: [...cells, cell] });
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
    else if (character === ",") {
      cells.push(cell);
      cell = "";
    } else if (isLineEnd) {
      if (cells.length > 0 || cell !== "") yield currentRow();
      cells = [];
      cell = "";
      rowLine = line;
    } else cell += character;
  }
  if (cells.length > 0 || cell !== "") yield currentRow();
}

/** Returns the header and the first rows after it. */
export function firstRows(text: string, count: number): { columns: string[]; rows: CsvRow[] } {
  const rows: CsvRow[] = [];
  for (const row of parseRows(text)) {
    rows.push(row);
    if (rows.length > count) break;
  }
  return { columns: (rows[0]?.cells ?? []).map((name) => name.trim()), rows: rows.slice(1) };
}

/** Returns the invalid values by line: the cell of the error's column, or the whole row if no column is named. */
export function valuesByLine(
  text: string,
  rowErrors: readonly { row: number; column: string | null }[],
): Map<number, string> {
  const columnsByLine = new Map(rowErrors.map(({ row: line, column }) => [line, column]));
  const lastLine = Math.max(0, ...columnsByLine.keys());
  const values = new Map<number, string>();
  let columns: string[] | null = null;
  for (const { line, cells } of parseRows(text)) {
    if (line > lastLine) break;
    columns ??= cells.map((name) => name.trim());
    const column = columnsByLine.get(line);
    if (column === undefined) continue;
    values.set(line, column === null ? cells.join(",") : (cells[columns.indexOf(column)] ?? ""));
  }
  return values;
}

/** Decodes UTF-8. Other files are decoded as Shift_JIS, in which spreadsheet programs in Japan save CSV files. */
export function decodeFile(bytes: ArrayBuffer): { text: string; encoding: "UTF-8" | "Shift_JIS" } {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), encoding: "UTF-8" };
  } catch {
    return { text: new TextDecoder("shift_jis").decode(bytes), encoding: "Shift_JIS" };
  }
}

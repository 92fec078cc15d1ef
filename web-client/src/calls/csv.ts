/**
 * A minimal CSV reader for showing what the server checks: cells by line, and decoding of files. Validation is the
 * server's.
 */

export interface CsvRow {
  /** The line on which the row begins; the header's is 1. */
  line: number;
  cells: string[];
}

/** Yields the rows that are not blank. Quotes may hold commas, line breaks and doubled quotes. */
export function* parseRows(text: string): Generator<CsvRow> {
  let line = 1;
  let rowLine = 1;
  let cells: string[] = [];
  let cell = "";
  let quoted = false;
  const source = text.replace(/^\uFEFF/, "");
  const row = () => ({ line: rowLine, cells: [...cells, cell] });
  for (let place = 0; place < source.length; place++) {
    const letter = source[place] as string;
    const ends = letter === "\n" || letter === "\r";
    if (letter === "\r" && source[place + 1] === "\n") {
      if (quoted) cell += letter;
      continue;
    }
    if (ends) line++;
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (source[place + 1] === '"') cell += source[++place];
      else quoted = false;
    } else if (letter === '"' && cell === "") quoted = true;
    else if (letter === ",") {
      cells.push(cell);
      cell = "";
    } else if (ends) {
      if (cells.length > 0 || cell !== "") yield row();
      cells = [];
      cell = "";
      rowLine = line;
    } else cell += letter;
  }
  if (cells.length > 0 || cell !== "") yield row();
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

/** Returns a column's values on some lines; the whole row where no column is named. */
export function valuesByLine(
  text: string,
  places: readonly { row: number; column: string | null }[],
): Map<number, string> {
  const columnsByLine = new Map(places.map(({ row, column }) => [row, column]));
  const last = Math.max(0, ...columnsByLine.keys());
  const values = new Map<number, string>();
  let columns: string[] | null = null;
  for (const { line, cells } of parseRows(text)) {
    if (line > last) break;
    columns ??= cells.map((name) => name.trim());
    const column = columnsByLine.get(line);
    if (column === undefined) continue;
    values.set(line, column === null ? cells.join(",") : (cells[columns.indexOf(column)] ?? ""));
  }
  return values;
}

/** Decodes UTF-8, or Shift_JIS, which spreadsheets write in Japan. */
export function decodeFile(bytes: ArrayBuffer): { text: string; encoding: "UTF-8" | "Shift_JIS" } {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), encoding: "UTF-8" };
  } catch {
    return { text: new TextDecoder("shift_jis").decode(bytes), encoding: "Shift_JIS" };
  }
}

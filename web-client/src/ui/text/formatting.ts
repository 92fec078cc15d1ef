/**
 * Parses the small Markdown of docs/formatting.md. The server has the same parser in storage/identity/formatting.py.
 * Both take time linear in the text's length: each line is read once, and at most one opening marker of each kind is
 * remembered.
 */

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "italic" | "bold" | "struck"; children: Inline[] }
  | { kind: "link"; href: string; children: Inline[] };

export type Block =
  | { kind: "paragraph" | "quote"; children: Inline[] }
  | { kind: "codeBlock"; text: string }
  | { kind: "list"; items: Item[] };

/** `number` is the number as typed; null for an item with a bullet. */
export interface Item {
  number: number | null;
  children: Inline[];
}

type Piece = string | Inline;
/** A line without the marker at its beginning, or all lines of a code block. */
interface BlockLine {
  kind: Block["kind"];
  content: string;
  number: number | null;
}

// Explicit classes, because `\s` and `\w` differ between Python and JavaScript.
const SPACE = "\\x00-\\x20\\x7f-\\xa0\\u1680\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u3000\\ufeff";
const SPACED_LETTER = "A-Za-z0-9\\u00c0-\\u1fff";
export const LETTER = `${SPACED_LETTER}\\u3005-\\u3007\\u3041-\\u9fff\\uac00-\\ud7a3`;
export const URL_ENDS = `${SPACE}<>"\`\\\\「」『』（）【】、。！？`;
const HTTP = "[hH][tT][tT][pP][sS]?://";

const FENCE_START = /^```[A-Za-z0-9+#.-]*[ \t]*$/;
const FENCE_END = /^```[ \t]*$/;
const LINE_MARKER = /^(\\?)(?:(>)(?: |$)|(-) |([0-9]{1,9})\. )/;
const ESCAPE_OR_BACKTICKS = /\\[\\*_~`[\]]|`+/g;
const TOKEN = new RegExp(
  `\\\\[\\\\*_~\`[\\]]|\`+|\\*+|_+|~+|\\[|\\]|(${HTTP}[^${URL_ENDS}]+)|[@＠﹫#＃﹟][_＿０-９Ａ-Ｚａ-ｚ${LETTER}]+`,
  "g",
);
const LINK_TARGET = new RegExp(
  `\\]\\((${HTTP}[^${URL_ENDS}()]+(?:\\([^${URL_ENDS}()]*\\)[^${URL_ENDS}()]*)*)\\)`,
  "y",
);
export const URL_TRAILING = ".,:;!?'*_~)]}";
const IS_BLANK = new RegExp(`^[${SPACE}]*$`);
const IS_SPACED_LETTER = new RegExp(`[${SPACED_LETTER}]`);
const IS_LETTER = new RegExp(`[${LETTER}]`);
/** Characters of faces such as `(^_^)`, before which italic text does not begin. */
const IS_FACE = /[\^;=<>°´¨≧≦∀・･ﾟ＾￣｀-]/;

const KINDS = { "*": "italic", _: "italic", "**": "bold", "~~": "struck" } as const;
const MARKERS = new Set([...Object.keys(KINDS), "***", "["]);

/** Returns the blocks of a text. */
export function parseFormatting(text: string): Block[] {
  const groups: BlockLine[][] = [];
  for (const row of blockLinesOf(text)) {
    const group = groups.at(-1);
    const last = group?.[0];
    const isContinued = last?.kind === row.kind && (last.number === null) === (row.number === null);
    if (group && isContinued && row.kind !== "codeBlock") group.push(row);
    else groups.push([row]);
  }
  return groups
    .map(blockOf)
    .filter((block) =>
      block.kind === "paragraph" || block.kind === "quote" ? block.children.length > 0 : true,
    );
}

/** Returns the text without its markers. Items of lists keep their bullets and numbers. */
export function plainText(text: string): string {
  return parseFormatting(text)
    .map((block) => {
      if (block.kind === "codeBlock") return block.text;
      if (block.kind !== "list") return plain(block.children);
      const lines = block.items.map((item) => `${bulletOf(item)} ${plain(item.children)}`);
      return lines.join("\n");
    })
    .join("\n");
}

export const bulletOf = ({ number }: Item) => (number === null ? "-" : `${number}.`);

const plain = (nodes: readonly Inline[]): string =>
  nodes.map((node) => ("text" in node ? node.text : plain(node.children))).join("");

/** Returns whether a caret after this text is inside of a fenced code block that is still open. */
export function isInFence(textBeforeCaret: string): boolean {
  let isOpen = false;
  for (const line of textBeforeCaret.split("\n"))
    if ((isOpen ? FENCE_END : FENCE_START).test(line)) isOpen = !isOpen;
  return isOpen;
}

function* blockLinesOf(text: string): Generator<BlockLine> {
  const lines = text.split(/\r\n?|\n/);
  const ends = lines.flatMap((line, index) => (FENCE_END.test(line) ? [index] : [])).reverse();
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    while ((ends.at(-1) ?? Number.POSITIVE_INFINITY) <= index) ends.pop();
    const end = ends.at(-1);
    if (end !== undefined && FENCE_START.test(line)) {
      yield { kind: "codeBlock", content: lines.slice(index + 1, end).join("\n"), number: null };
      index = end;
    } else yield blockLineOf(line);
  }
}

function blockLineOf(line: string): BlockLine {
  const [marker = "", backslash, quote, bullet, number] = LINE_MARKER.exec(line) ?? [];
  if (!marker || backslash)
    return { kind: "paragraph", content: line.slice(backslash?.length), number: null };
  const content = line.slice(marker.length);
  if (quote) return { kind: "quote", content, number: null };
  return { kind: "list", content, number: bullet ? null : Number(number) };
}

function blockOf(rows: BlockLine[]): Block {
  const kind = rows[0]?.kind ?? "paragraph";
  if (kind === "codeBlock") return { kind, text: rows[0]?.content ?? "" };
  if (kind === "list")
    return {
      kind,
      items: rows.map(({ number, content }) => ({ number, children: joined(inline(content)) })),
    };
  const isFilled = (row: BlockLine) => !IS_BLANK.test(row.content);
  const filled = rows.slice(rows.findIndex(isFilled), rows.findLastIndex(isFilled) + 1);
  const pieces = filled.flatMap((row, index) => [index > 0 ? "\n" : "", ...inline(row.content)]);
  return { kind, children: joined(pieces) };
}

/** Returns the nodes with a text node for each run of adjacent strings. */
function joined(pieces: readonly Piece[]): Inline[] {
  const nodes: Inline[] = [];
  for (const piece of pieces) {
    const last = nodes.at(-1);
    if (typeof piece !== "string") nodes.push(piece);
    else if (last?.kind === "text") last.text += piece;
    else if (piece) nodes.push({ kind: "text", text: piece });
  }
  return nodes;
}

/** Returns the ends and texts of the line's code spans by their starts. */
function codeSpans(line: string): Map<number, { end: number; code: string }> {
  const runs = new Map<number, number[]>([1, 2, 3].map((length) => [length, []]));
  for (const run of line.matchAll(/`+/g)) runs.get(run[0].length)?.push(run.index);
  for (const starts of runs.values()) starts.reverse();
  const spans = new Map<number, { end: number; code: string }>();
  ESCAPE_OR_BACKTICKS.lastIndex = 0;
  for (let token = ESCAPE_OR_BACKTICKS.exec(line); token; token = ESCAPE_OR_BACKTICKS.exec(line)) {
    const position = token.index + token[0].length;
    const closing = (token[0].startsWith("`") && runs.get(token[0].length)) || [];
    while ((closing.at(-1) ?? position) < position) closing.pop();
    const start = closing.at(-1);
    if (start === undefined) continue;
    const end = start + token[0].length;
    spans.set(token.index, { end, code: unpadded(line.slice(position, start)) });
    ESCAPE_OR_BACKTICKS.lastIndex = end;
  }
  return spans;
}

/** Returns the code without a space at both ends, which lets it begin or end with a backtick. */
const unpadded = (code: string) =>
  code.startsWith(" ") && code.endsWith(" ") && /[^ ]/.test(code) ? code.slice(1, -1) : code;

/** Returns whether the run of markers between two characters may open, and whether it may close. */
function sidesOf(run: string, before: string, after: string): { mayOpen: boolean; mayClose: boolean } {
  if (!MARKERS.has(run)) return { mayOpen: false, mayClose: false };
  let mayOpen = !IS_BLANK.test(after);
  let mayClose = !IS_BLANK.test(before);
  if (run === "[") return { mayOpen: mayOpen && after !== "]", mayClose: false };
  if (run === "_") {
    mayOpen &&= !IS_LETTER.test(before);
    mayClose &&= !IS_LETTER.test(after);
  } else if (IS_SPACED_LETTER.test(before) && IS_SPACED_LETTER.test(after)) mayOpen = false;
  if ((run === "*" || run === "_") && IS_FACE.test(after)) mayOpen = false;
  return { mayOpen, mayClose };
}

/** Returns a line as strings and nodes. At most one opening of each marker is kept: the nearest before the position. */
function inline(line: string): Piece[] {
  const spans = line.includes("`") ? codeSpans(line) : null;
  // Each opening with what follows it so far. The outermost has no marker.
  const openings: { marker: string; pieces: Piece[] }[] = [{ marker: "", pieces: [] }];
  const add = (piece: Piece) => openings.at(-1)?.pieces.push(piece);
  const indexOf = (marker: string) =>
    Math.max(
      0,
      openings.findIndex((opening) => opening.marker === marker),
    );

  /** Makes text of an opening marker. Index 0 has none. */
  function giveUp(index: number) {
    const [opening] = index > 0 ? openings.splice(index, 1) : [];
    const outer = openings[index - 1]?.pieces;
    if (!opening || !outer) return;
    outer.push(opening.marker);
    for (const piece of opening.pieces) outer.push(piece);
  }

  /** Puts what follows the opening into a node. */
  function wrap(index: number, nodeOf: (children: Inline[]) => Inline) {
    while (openings.length > index + 1) giveUp(openings.length - 1);
    add(nodeOf(joined(openings.pop()?.pieces ?? [])));
  }

  /** Closes the openings that the run of markers ends. Returns the markers that are left. */
  function close(run: string): string {
    const shorter = run.startsWith("*") ? ["**", "*"].filter(({ length }) => length < run.length) : [];
    const index = (run && indexOf(run)) || Math.max(0, ...shorter.map(indexOf));
    const marker = openings[index]?.marker as keyof typeof KINDS | "" | undefined;
    if (!marker) return run;
    wrap(index, (children) => ({ kind: KINDS[marker], children }));
    return close(run.slice(marker.length));
  }

  function takeMarker(run: string, start: number) {
    const { mayOpen, mayClose } = sidesOf(run, line.slice(start - 1, start), line.charAt(start + run.length));
    const left = mayClose ? close(run) : run;
    for (const marker of left === "***" ? ["**", "*"] : left ? [left] : []) {
      if (!mayOpen) add(marker);
      else {
        giveUp(indexOf(marker));
        openings.push({ marker, pieces: [] });
      }
    }
  }

  /** Makes a link of what follows the opening bracket if a target follows. Returns the position after it. */
  function closeLink(start: number): number {
    const index = indexOf("[");
    LINK_TARGET.lastIndex = start;
    const target = index > 0 ? LINK_TARGET.exec(line) : null;
    if (target) wrap(index, (children) => ({ kind: "link", href: target[1] ?? "", children }));
    else {
      giveUp(index);
      add("]");
    }
    return start + (target?.[0].length ?? 1);
  }

  /** Adds the token to the tree. Returns the position after it. */
  function take(text: string, start: number, isUrl: boolean): number {
    const span = spans?.get(start);
    if (span) {
      add({ kind: "code", text: span.code });
      return span.end;
    }
    if (isUrl) {
      // A link's own text must not show another address.
      giveUp(indexOf("["));
      let length = text.length;
      while (URL_TRAILING.includes(text.charAt(length - 1))) length -= 1;
      add(text.slice(0, length));
      return start + length;
    }
    if (text === "]") return closeLink(start);
    if (text.startsWith("\\")) add(text.slice(1));
    else if (/^[*_~[]/.test(text)) takeMarker(text, start);
    else add(text);
    return start + text.length;
  }

  let position = 0;
  TOKEN.lastIndex = 0;
  for (let token = TOKEN.exec(line); token; token = TOKEN.exec(line)) {
    add(line.slice(position, token.index));
    position = take(token[0], token.index, token[1] !== undefined);
    TOKEN.lastIndex = position;
  }
  add(line.slice(position));
  while (openings.length > 1) giveUp(openings.length - 1);
  return openings[0]?.pieces ?? [];
}

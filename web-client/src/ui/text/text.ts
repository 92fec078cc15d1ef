/**
 * Splits a text into plain text, links, mentions and hashtags. Text is never interpreted as HTML. The server finds the
 * same mentions and hashtags in storage/identity/mentions.py.
 */
import { LETTER, URL_ENDS, URL_TRAILING } from "./formatting";

export type TextPart =
  | { kind: "text"; text: string }
  | { kind: "link"; text: string; href: string }
  | { kind: "mention"; text: string; handle: string }
  | { kind: "tag"; text: string; tag: string };

const URL = `(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://[^${URL_ENDS}]+`;
/** An address of the web without a scheme, such as example.org/@ann. It is shown as text. */
const PAGE = `(?<![${LETTER}.-])[${LETTER}-]+(?:\\.[${LETTER}-]+)+(?::[0-9]+)?/[^${URL_ENDS}]*`;
const CANDIDATE = new RegExp(
  `(${URL})|${PAGE}|[@＠﹫]([A-Za-z0-9_Ａ-Ｚａ-ｚ０-９＿]{1,30}(?:-[0-9]+)?)|([#＃﹟])`,
  "g",
);
/** The rest of the address of a user of another server, such as @ann@example.org, after the name. */
const REST_OF_ADDRESS = /[A-Za-z0-9_.-]*[@＠﹫]/y;
const MAX_HASHTAG_CHARS = 100;

/** Scripts without spaces, such as Japanese, and Korean. A mention may stand beside their characters. */
const SPACELESS = new RegExp(
  "^[\\u3005-\\u3007\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}" +
    "\\u3041-\\u3096\\u3099\\u309a\\u309d-\\u309f\\u30a1-\\u30fa\\u30fc-\\u30ff\\u31f0-\\u31ff" +
    "\\u1100-\\u11ff\\u3130-\\u318f\\ua960-\\ua97f\\uac00-\\ud7ff" +
    "\\u0e01-\\u0e3a\\u0e40-\\u0e4e\\u0e81-\\u0ece\\u1000-\\u103f\\u1050-\\u109f\\u1780-\\u17d3]",
  "u",
);
const INVISIBLE = /\p{Variation_Selector}|\u034f|\u115f|\u1160|\u17b4|\u17b5/gu;

export function parseText(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let end = 0;
  CANDIDATE.lastIndex = 0;
  for (let match = CANDIDATE.exec(text); match; match = CANDIDATE.exec(text)) {
    const part = partOf(text, match);
    if (part === null) continue;
    if (match.index > end) parts.push({ kind: "text", text: text.slice(end, match.index) });
    parts.push(part);
    end = match.index + part.text.length;
    CANDIDATE.lastIndex = end;
  }
  if (end < text.length) parts.push({ kind: "text", text: text.slice(end) });
  return parts;
}

/** Returns the part that the match begins; null if it is text. The next match is then sought where that may begin. */
function partOf(text: string, match: RegExpExecArray): TextPart | null {
  const [found, url, handle, hash] = match;
  const before = characterBefore(text, match.index);
  if (url !== undefined) {
    if (!/^https?:/i.test(url)) return null;
    let length = url.length;
    while (URL_TRAILING.includes(url.charAt(length - 1))) length -= 1;
    return { kind: "link", text: url.slice(0, length), href: url.slice(0, length) };
  }
  if (handle !== undefined) {
    if (isMention(text, before, CANDIDATE.lastIndex))
      return { kind: "mention", text: found, handle: normalized(handle).toLowerCase() };
    CANDIDATE.lastIndex = match.index + 1;
  } else if (hash !== undefined && !isWord(before) && !/[#＃﹟&＆/／]/.test(before)) {
    CANDIDATE.lastIndex = endOfTag(text, match.index + 1);
    const typed = text.slice(match.index, CANDIDATE.lastIndex);
    const tag = normalized(typed.slice(1)).replace(INVISIBLE, "").toLowerCase();
    if ([...tag].length <= MAX_HASHTAG_CHARS && /[^\p{Nd}\p{M}]/u.test(tag))
      return { kind: "tag", text: typed, tag };
  }
  return null;
}

/** Returns whether a name is a word, and no part of a mail address or of a name with a server. */
function isMention(text: string, before: string, end: number): boolean {
  REST_OF_ADDRESS.lastIndex = end;
  const after = characterAt(text, end);
  const hasDomain = after === "." && isSpaced(characterAt(text, end + 1));
  const isInWord = isSpaced(before) || isSpaced(after) || /[@＠﹫]/.test(before);
  return !isInWord && !hasDomain && !REST_OF_ADDRESS.test(text);
}

/** Returns the end of the hashtag whose first character would be at `start`. No hashtag begins with a mark. */
function endOfTag(text: string, start: number): number {
  const first = characterAt(text, start);
  if (!isWord(first) || /^\p{M}/u.test(first)) return start;
  let end = start + first.length;
  for (;;) {
    const character = characterAt(text, end);
    // Middle dots, and joiners of scripts such as Persian, stand between two other characters.
    const isMedial = /^[·・\u200c\u200d]$/.test(normalized(character));
    if (!isWord(character) && !(isMedial && isWord(characterAt(text, end + 1)))) return end;
    end += character.length;
  }
}

/** Returns whether a character belongs to a word of a script with spaces. */
const isSpaced = (character: string) => isWord(character) && !SPACELESS.test(normalized(character));

/** Returns whether a character, normalized, is made of letters, marks, numbers and underscores. "" is not. */
const isWord = (character: string) => /^[\p{L}\p{M}\p{N}_]+$/u.test(normalized(character));

const normalized = (text: string) => text.normalize("NFKC");

const characterAt = (text: string, index: number) =>
  index < text.length ? String.fromCodePoint(text.codePointAt(index) ?? 0) : "";

const characterBefore = (text: string, index: number) =>
  [...text.slice(Math.max(0, index - 2), index)].at(-1) ?? "";

/** Returns the partial handle before the caret, and the position of its @; null if there is none. */
export function mentionAt(text: string, caret: number): { query: string; start: number } | null {
  const match = /[@＠]([\p{L}\p{N}_.-]*)$/u.exec(text.slice(0, caret));
  const before = match ? characterBefore(text, match.index) : "";
  if (!match || isSpaced(before) || /[@＠]/.test(before)) return null;
  return { query: normalized(match[1] ?? ""), start: match.index };
}

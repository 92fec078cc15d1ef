/** Splits a text into plain text, links, mentions and hashtags. Text is never interpreted as HTML. */

export type TextPart =
  | { kind: "text"; text: string }
  | { kind: "link"; text: string; href: string }
  | { kind: "mention"; text: string; handle: string }
  | { kind: "tag"; text: string; tag: string };

const LINKS_MENTIONS_HASHTAGS =
  /(https?:\/\/[^\s<>"「」（）]+)|(?<![\p{L}\p{N}_@])@([A-Za-z0-9_][A-Za-z0-9_.-]*)|(?<![\p{L}\p{N}_&#/])#([\p{L}\p{N}\p{M}_]+)/gu;
const TRAILING_PUNCTUATION = /[.,;:!?*_~)\]}'、。！？]+$/u;

export function parseText(text: string): TextPart[] {
  const parts: TextPart[] = [];
  let end = 0;
  for (const match of text.matchAll(LINKS_MENTIONS_HASHTAGS)) {
    const part = partOf(match);
    if (match.index > end) parts.push({ kind: "text", text: text.slice(end, match.index) });
    parts.push(part);
    end = match.index + part.text.length;
  }
  if (end < text.length) parts.push({ kind: "text", text: text.slice(end) });
  return parts;
}

function partOf([match, link, handle, tag]: RegExpMatchArray): TextPart {
  if (link !== undefined) {
    const text = link.replace(TRAILING_PUNCTUATION, "");
    return { kind: "link", text, href: text };
  }
  if (handle !== undefined) {
    const name = handle.replace(/[.-]+$/, "");
    return { kind: "mention", text: `@${name}`, handle: name };
  }
  return { kind: "tag", text: match, tag: (tag ?? "").toLowerCase() };
}

/** Returns the partial handle before the caret, and the position of its @; null if there is none. */
export function mentionAt(text: string, caret: number): { query: string; start: number } | null {
  const match = /(?:^|[^\p{L}\p{N}_@])@([\p{L}\p{N}_.-]*)$/u.exec(text.slice(0, caret));
  const query = match?.[1];
  return query === undefined ? null : { query, start: caret - query.length - 1 };
}

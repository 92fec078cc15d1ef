/** Ctrl B and Ctrl I (⌘ B and ⌘ I) in a text field: they add the markers of bold or italic text, or remove them. */
import type { KeyboardEvent } from "react";

const MARKERS: Readonly<Record<string, string>> = { b: "**", i: "*" };

interface Replacement {
  /** The range that is replaced. */
  start: number;
  end: number;
  text: string;
  /** What is selected afterwards. */
  selection: readonly [number, number];
}

/** Changes the text if the key is one that formats. Returns whether it is. */
export function applyFormattingKey(event: KeyboardEvent<HTMLTextAreaElement>): boolean {
  const marker = MARKERS[event.key.toLowerCase()];
  if (!marker || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return false;
  const field = event.currentTarget;
  const { start, end, text, selection } = toggled(
    field.value,
    field.selectionStart,
    field.selectionEnd,
    marker,
  );
  field.setSelectionRange(start, end);
  // The only way to change a field so that Ctrl Z undoes it. It emits an input event.
  if (text) document.execCommand("insertText", false, text);
  else if (end > start) document.execCommand("delete");
  field.setSelectionRange(...selection);
  return true;
}

/** Returns how the selected text gets the marker, or loses it. In each line, the marker excludes spaces at the ends. */
export function toggled(text: string, start: number, end: number, marker: string): Replacement {
  const selected = text.slice(start, end);
  if (hasMarker(text, start, end, marker)) {
    const outerStart = start - marker.length;
    const selection = [outerStart, outerStart + selected.length] as const;
    return { start: outerStart, end: end + marker.length, text: selected, selection };
  }
  if (!selected.trim()) {
    const caret = start + marker.length;
    return { start, end: start, text: marker + marker, selection: [caret, caret] };
  }
  const lines = selected.split("\n").map((line) => {
    const word = line.trim();
    return word && line.replace(word, () => `${marker}${word}${marker}`);
  });
  const marked = lines.join("\n");
  const before = lines.length === 1 ? marked.indexOf(marker) + marker.length : 0;
  const after = lines.length === 1 ? marked.length - marked.lastIndexOf(marker) : 0;
  return { start, end, text: marked, selection: [start + before, start + marked.length - after] };
}

/** Returns whether the range stands between two of the markers. Bold and italic text has three asterisks. */
function hasMarker(text: string, start: number, end: number, marker: string): boolean {
  const before = /\**$/.exec(text.slice(0, start))?.[0].length ?? 0;
  const after = /^\**/.exec(text.slice(end))?.[0].length ?? 0;
  const asterisks = Math.min(before, after);
  return marker === "**" ? asterisks >= 2 : asterisks % 2 === 1;
}

/**
 * Reads files of unknown encoding by their content: UTF-8, UTF-16, Shift_JIS and Windows-1252 (ADR 75).
 *
 * Spreadsheet programs save Shift_JIS in Japan, and Windows-1252 in Western Europe and America.
 */

export type Encoding = "UTF-8" | "UTF-16LE" | "UTF-16BE" | "Shift_JIS" | "Windows-1252";

const SAMPLE_BYTES = 1000;
const CHUNK = 0x8000;
/** Half-width katakana, which are single bytes, and characters of two bytes, between ASCII letters or other text. */
const SHIFT_JIS_RUNS =
  /([A-Za-z]?)((?:[\x81-\x9F\xE0-\xFC][\x40-\x7E\x80-\xFC]|[\x80\xA1-\xDF])+)([A-Za-z]?)/g;
/** Letters and the apostrophe of Windows-1252, besides Š, Œ and Ž, with whose bytes frequent kanji begin. */
const WINDOWS_1252_LETTERS = /^[A-Za-z\x92\x9A\x9C\x9E\x9F\xC0-\xD6\xD8-\xF6\xF8-\xFF]+$/;

export function decodeFile(buffer: ArrayBuffer): { text: string; encoding: Encoding } {
  const bytes = new Uint8Array(buffer);
  const encoding = encodingOf(bytes);
  return { text: new TextDecoder(encoding).decode(bytes), encoding };
}

function encodingOf(bytes: Uint8Array): Encoding {
  const utf16 = utf16Of(bytes);
  if (utf16) return utf16;
  if (isValid(bytes, "UTF-8")) return "UTF-8";
  return isValid(bytes, "Shift_JIS") && !looksWestern(bytes) ? "Shift_JIS" : "Windows-1252";
}

/** Recognizes UTF-16 by its byte order mark, or by the zero bytes of ASCII letters and digits. */
function utf16Of(bytes: Uint8Array): "UTF-16LE" | "UTF-16BE" | null {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "UTF-16LE";
  if (first === 0xfe && second === 0xff) return "UTF-16BE";
  const sample = [...bytes.subarray(0, SAMPLE_BYTES)];
  const countZeros = (isCounted: (index: number) => boolean) =>
    sample.filter((byte, index) => byte === 0 && isCounted(index)).length;
  const [even, odd] = [countZeros((index) => index % 2 === 0), countZeros((index) => index % 2 === 1)];
  if (even + odd <= sample.length / 8) return null;
  return odd > even ? "UTF-16LE" : "UTF-16BE";
}

function isValid(bytes: Uint8Array, encoding: Encoding): boolean {
  try {
    new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns whether at least half of the runs of bytes that could be Japanese are accented letters inside words of Windows-1252.
 *
 * In Shift_JIS, such a letter becomes one katakana or, together with the letter after it, one kanji.
 */
function looksWestern(bytes: Uint8Array): boolean {
  let western = 0;
  let japanese = 0;
  for (const [, before, run = "", after] of binaryText(bytes).matchAll(SHIFT_JIS_RUNS)) {
    const isInWord = before !== "" || after !== "";
    const isAlone = run.length === 1;
    if (isAlone || (isInWord && WINDOWS_1252_LETTERS.test(run))) western++;
    else japanese++;
  }
  return western >= japanese;
}

/** Returns a text with one character for each byte. */
function binaryText(bytes: Uint8Array): string {
  let text = "";
  for (let start = 0; start < bytes.length; start += CHUNK) {
    text += String.fromCharCode(...bytes.subarray(start, start + CHUNK));
  }
  return text;
}

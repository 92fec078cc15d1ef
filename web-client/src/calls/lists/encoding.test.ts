import { expect, test } from "vitest";
import { decodeFile, type Encoding } from "./encoding";

const bytesOf = (...bytes: number[]) => new Uint8Array(bytes);
const ascii = (text: string) => bytesOf(...[...text].map((letter) => letter.charCodeAt(0)));

// Some releases of Node.js decode these bytes of Windows-1252 wrongly, browsers do not (nodejs/node#56542).
const WINDOWS_1252_FROM_80 = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8DŽ\x8F\x90‘’“”•–—˜™š›œ\x9DžŸ";

function toWindows1252(text: string): Uint8Array {
  const bytes = [...text].map((character) => {
    const index = WINDOWS_1252_FROM_80.indexOf(character);
    return index < 0 ? character.charCodeAt(0) : 0x80 + index;
  });
  return bytesOf(...bytes);
}

const shiftJisBytes = new Map<string, number[]>();
for (let first = 0; first <= 0xfc; first++) {
  for (const bytes of [[first], ...Array.from({ length: 0xbd }, (_, index) => [first, 0x40 + index])]) {
    const character = new TextDecoder("shift_jis").decode(bytesOf(...bytes));
    if ([...character].length === 1 && !shiftJisBytes.has(character)) shiftJisBytes.set(character, bytes);
  }
}

function toShiftJis(text: string): Uint8Array {
  return bytesOf(...[...text].flatMap((character) => shiftJisBytes.get(character) ?? Number.NaN));
}

function decode(bytes: Uint8Array) {
  return decodeFile(bytes.slice().buffer);
}

const list = (name: string) => `phone_number,name\r\n+815012345680,${name}\r\n`;

test.each<[Encoding, Uint8Array]>([
  ["UTF-8", bytesOf(0xef, 0xbb, 0xbf, ...new TextEncoder().encode(list("花é")))],
  ["UTF-8", new TextEncoder().encode(list("花é"))],
  ["UTF-16LE", bytesOf(0xff, 0xfe, ...[...list("花é")].flatMap(littleEndian))],
  ["UTF-16LE", bytesOf(...[...list("花é")].flatMap(littleEndian))],
  ["UTF-16BE", bytesOf(0xfe, 0xff, ...[...list("花é")].flatMap(bigEndian))],
  ["UTF-16BE", bytesOf(...[...list("花é")].flatMap(bigEndian))],
])("a file in %s is read, with or without a byte order mark", (encoding, bytes) => {
  expect(decode(bytes)).toEqual({ text: list("花é"), encoding });
});

function littleEndian(character: string): number[] {
  return [character.charCodeAt(0) & 0xff, character.charCodeAt(0) >> 8];
}

function bigEndian(character: string): number[] {
  return littleEndian(character).reverse();
}

const JAPANESE =
  "佐藤 花 ソース サトウ さとう ｻﾄｳ ﾔﾏﾀﾞ 表 能 一 ー ① 髙橋 渡邊 齋藤 株式会社山田 ABC商事 NTTデータ A棟 B室 A様 1階 Tシャツ ㈱ABC Aさん DM可";
const WESTERN =
  "Müller René Pérez Peña García José Ødegård MÜLLER ÉLODIE Straße Weiß Françoise O’Neil “Bob” «Bob» ¡Hola! Núñez Zoë Ångström São CORAÇÃO créée Íñigo Élan cœur À 20° £5 €5 Nº 2ème naïve";

test.each(JAPANESE.split(" "))("a list in Shift_JIS whose only name is %s is read", (name) => {
  expect(decode(toShiftJis(list(name)))).toEqual({ text: list(name), encoding: "Shift_JIS" });
});

test.each(WESTERN.split(" "))("a list in Windows-1252 whose only name is %s is read", (name) => {
  expect(decode(toWindows1252(list(name))).encoding).toBe("Windows-1252");
});

test("the letters of Windows-1252 are read", () => {
  expect(decode(toWindows1252(list("Müller Pérez Straße"))).text).toBe(list("Müller Pérez Straße"));
});

test("a name that could be of either encoding is read as the other names are", () => {
  for (const names of ["ÄÖÜ Müller Groß Jäger", "Škoda Núñez René", "Œuvre Élan"]) {
    const text = names.split(" ").map(list).join("");
    expect(decode(toWindows1252(text)).encoding).toBe("Windows-1252");
  }
  const text = "A知 佐藤 田中".split(" ").map(list).join("");
  expect(decode(toShiftJis(text))).toEqual({ text, encoding: "Shift_JIS" });
});

test("an empty file and a file of ASCII are UTF-8", () => {
  expect(decode(bytesOf())).toEqual({ text: "", encoding: "UTF-8" });
  expect(decode(ascii(list("Ann"))).encoding).toBe("UTF-8");
  expect(decode(ascii("a\u0000bcdefgh")).encoding).toBe("UTF-8");
});

test("a file of 10 MB is read", () => {
  const row = toShiftJis("+815012345680,佐藤\r\n");
  const bytes = new Uint8Array(row.length * 400_000);
  for (let start = 0; start < bytes.length; start += row.length) bytes.set(row, start);
  expect(decode(bytes).encoding).toBe("Shift_JIS");
});

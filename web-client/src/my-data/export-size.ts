/** Returns a number of bytes as a text such as "3 kB" or "1.2 MB". */
export function sizeText(language: string, bytes: number): string {
  const isSmall = bytes < 1_000_000;
  const value = Math.max(bytes / (isSmall ? 1_000 : 1_000_000), 1);
  return new Intl.NumberFormat(language, {
    style: "unit",
    unit: isSmall ? "kilobyte" : "megabyte",
    maximumFractionDigits: isSmall ? 0 : 1,
  }).format(value);
}

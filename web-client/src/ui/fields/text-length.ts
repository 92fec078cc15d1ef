/** The length of texts as the server counts them: in code points, without white space at the ends. */

export const lengthOf = (text: string): number => Array.from(text.trim()).length;

/** Returns by how many characters the text is longer than the limit; zero or less if it is not. */
export const excessOf = (text: string, limit: number): number => lengthOf(text) - limit;

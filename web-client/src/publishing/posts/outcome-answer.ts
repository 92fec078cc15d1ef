/** The answer of a person about a publication whose outcome is unknown. */

export interface OutcomeAnswer {
  published: boolean;
  publishAgain: boolean;
  externalId?: string;
  url?: string;
}

/** Returns what a person has entered about the post that was found: its address, its id at the network, or nothing. */
export function foundPost(text: string): Pick<OutcomeAnswer, "externalId" | "url"> {
  const trimmed = text.trim();
  if (trimmed === "") return {};
  return /^https?:\/\//i.test(trimmed) ? { url: trimmed } : { externalId: trimmed };
}

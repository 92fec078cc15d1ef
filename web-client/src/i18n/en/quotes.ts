/** Texts of quotes: messages that other messages show. */
export const quotes = {
  "quote.action": "Quote",
  "quote.label": "Quote of",
  "quote.remove": "Remove quote",
  "quote.unavailable": "The quoted message is not available to you",
};

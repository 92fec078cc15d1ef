/** Texts of the emoji picker. */
export const emoji = {
  "emoji.activities": "Activities",
  "emoji.emojis": "Emojis",
  "emoji.flags": "Flags",
  "emoji.food": "Food and drink",
  "emoji.frequent": "Frequent",
  "emoji.groups": "Groups of emojis",
  "emoji.insert": "Insert an emoji",
  "emoji.nature": "Animals and nature",
  "emoji.none": "No emoji has this name",
  "emoji.objects": "Objects",
  "emoji.own": "Stamps of the organization",
  "emoji.people": "People",
  "emoji.search": "Search emojis",
  "emoji.smileys": "Smileys",
  "emoji.symbols": "Symbols",
  "emoji.travel": "Travel and places",
};

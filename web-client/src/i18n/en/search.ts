/** Texts of the search screen. */
export const searchTexts = {
  "palette.searchFor": "Search messages for “{query}”",
  "search.blocked": "Blocked",
  "search.conversation": "Direct messages",
  "search.deactivated": "Deactivated",
  "search.filters": "Add a filter",
  "search.incomplete": "The words are common. The search has not looked at all messages yet.",
  "search.kinds": "What to search",
  "search.label": "Words, “a phrase”, from:name",
  "search.messages": "Messages",
  "search.noName":
    "Type the beginning of a name or handle. A search has at most 16 words and 200 characters.",
  "search.none": "Nothing found",
  "search.noneHint": "Try fewer words, or another form of a word.",
  "search.noPeopleHint": "Check the spelling, or type only the beginning of the name.",
  "search.people": "People",
  "search.posts": "Posts",
  "search.results": "Results",
  "search.start": "Search messages, posts and topics",
  "search.startHint": "You find what you may read now, the newest first.",
  "search.startPeople": "Search people",
  "search.startPeopleHint":
    "Type the beginning of a name or handle. Everybody in your organization is found.",
  "search.topics": "Topics",
  "search.tooVague": "Add a word, a phrase or a person. A search has at most 16 words and 200 characters.",
  "search.wrongTerm": "“{term}” is not understood. Check the name or the date.",
};

/** Texts of the viewer's mutes. */
export const mutes = {
  "mutes.end": "Unmute",
  "mutes.hint":
    "You see no posts of muted people in feeds, and get no notifications from anything in this list.",
  "mutes.forGood": "Until I unmute",
  "mutes.hiddenParent": "Replies to a message that you cannot see",
  "mutes.howLong": "Mute for how long?",
  "mutes.mute": "Mute {name}",
  "mutes.muted.COMMUNITY": "You get no notifications from {name} any more.",
  "mutes.muted.POST": "You get no notifications from this conversation any more.",
  "mutes.muted.TOPIC": "You get no notifications from {name} any more.",
  "mutes.muted.USER": "You muted {name}. They are not notified.",
  "mutes.mutedUntil": "{name} is muted until {until}.",
  "mutes.none": "Nothing is muted",
  "mutes.noneHint":
    "Mute people on their profile, topics, threads and communities by the bell at the top, and posts by theirs.",
  "mutes.notVisible": "No longer visible to you",
  "mutes.subject.COMMUNITY": "Community",
  "mutes.subject.POST": "Conversation of a post",
  "mutes.subject.THREAD": "Thread",
  "mutes.subject.TOPIC": "Topic",
  "mutes.subject.USER": "Person",
  "mutes.title": "Muted people, places and conversations",
  "mutes.until": "until {until}",
  "mutes.unmute": "Unmute {name}",
  "mutes.unmuted": "{name} is no longer muted",
};

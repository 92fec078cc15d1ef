/** Texts of presence: who is online and who is typing. */
export const presence = {
  "admin.settings": "Settings",
  "audit.PRESENCE_SET": "{actor} changed who sees presence in the organization",
  "auditAction.PRESENCE_SET": "Presence changed",
  "auditValue.off": "off",
  "auditValue.on": "on",
  "presence.enable": "Show who is online and typing",
  "presence.enableHint": "Holds for everybody in the organization. People can still hide themselves.",
  "presence.offByOrganization": "An administrator has turned presence off. Nobody sees it now.",
  "presence.online": "online",
  "presence.show": "Show others when I am online and typing",
  "presence.showHint": "People in your communities and conversations see it, except people whom you blocked.",
  "presence.title": "Presence",
  "typing.one": "{name} is typing …",
  "typing.several": "Several people are typing …",
  "typing.two": "{first} and {second} are typing …",
};

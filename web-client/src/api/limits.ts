/** The server's limits on texts, in characters. No field cuts a text: a text that is too long is shown as an error. */
export const LIMITS = {
  message: 4_000,
  post: 4_000,
  scheduledPost: 10_000,
  bio: 300,
  altText: 1_500,
  accountName: 100,
  externalId: 500,
  communityName: 100,
  communityDescription: 2_000,
  topicTitle: 200,
  groupName: 100,
  callJobName: 200,
  scenario: 4_000,
  joinRequest: 500,
  keyName: 100,
  passkeyName: 100,
  stampPackName: 100,
  report: 1_000,
  reason: 500,
  /** People of a conversation, the viewer included. */
  conversationPeople: 50,
} as const;

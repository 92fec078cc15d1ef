/** API operations of the publishing screen. */
import { graphql, type ResultOf } from "../api/graphql";
import { AttachmentParts } from "../files/operations";

export const TargetParts = graphql(`
  fragment TargetParts on PublicationTarget {
    __typename
    ... on TopicTarget { topic { id title } }
    ... on AccountTarget { account { id name network } }
  }
`);
export type PublicationTarget = ResultOf<typeof TargetParts>;

/** The fields of a post that the calendar shows. */
export const ScheduledParts = graphql(
  `fragment ScheduledParts on ScheduledPost {
    id
    author { id handle name avatarUrl }
    text
    media { url altText kind }
    dueAt
    timeZone
    maxLatenessS
    state
    revision
    editable
    publications { id state target { ...TargetParts } }
  }`,
  [TargetParts],
);
export type ScheduledPost = ResultOf<typeof ScheduledParts>;
export type PostState = ScheduledPost["state"];
export type PublicationState = ScheduledPost["publications"][number]["state"];
export type MediaKind = ScheduledPost["media"][number]["kind"];

export const ScheduledPosts = graphql(
  `query ScheduledPosts($oldest: Timestamp!, $latest: Timestamp!, $limit: Int!) {
    page: scheduledPosts(oldest: $oldest, latest: $latest, limit: $limit) { newest hasNewer items { ...ScheduledParts } }
  }`,
  [ScheduledParts],
);

export const OutcomeCheckParts = graphql(`
  fragment OutcomeCheckParts on OutcomeCheck {
    account { id name network }
    profileUrl
    textStart
    firstCallAt
    lastCallAt
    nextLookupAt
  }
`);
export type OutcomeCheck = ResultOf<typeof OutcomeCheckParts>;

export const PublicationParts = graphql(
  `fragment PublicationParts on Publication {
    id
    state
    mediaState
    publishedAt
    latenessMs
    externalId
    url
    error { code message }
    attempts { at outcome detail }
    target { ...TargetParts }
    outcomeCheck { ...OutcomeCheckParts }
  }`,
  [TargetParts, OutcomeCheckParts],
);
export type Publication = ResultOf<typeof PublicationParts>;

/** One post with its files and all fields of its publications. */
export const ScheduledPostById = graphql(
  `query ScheduledPostById($id: ID!) {
    scheduledPost(id: $id) {
      ...ScheduledParts
      createdAt
      attachments { ...AttachmentParts }
      detailedPublications: publications { ...PublicationParts }
    }
  }`,
  [ScheduledParts, PublicationParts, AttachmentParts],
);
export type DetailedPost = NonNullable<ResultOf<typeof ScheduledPostById>["scheduledPost"]>;

export const PublicationEvents = graphql(`
  subscription PublicationEvents($jobId: ID, $since: Cursor) {
    jobEvents(jobId: $jobId, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on PublicationChanged { publication { id scheduledPostId } }
    }
  }
`);

export const SchedulePost = graphql(
  `mutation SchedulePost($input: SchedulePostInput!) { schedulePost(input: $input) { ...ScheduledParts } }`,
  [ScheduledParts],
);
export const SchedulePostAtLocalTime = graphql(
  `mutation SchedulePostAtLocalTime($input: SchedulePostAtLocalTimeInput!) {
    schedulePostAtLocalTime(input: $input) { ...ScheduledParts }
  }`,
  [ScheduledParts],
);
export const UpdatePost = graphql(
  `mutation UpdatePost($id: ID!, $input: UpdateScheduledPostInput!) {
    updateScheduledPost(id: $id, input: $input) { ...ScheduledParts }
  }`,
  [ScheduledParts],
);
export const CancelPost = graphql(
  `mutation CancelPost($id: ID!) { cancelScheduledPost(id: $id) { ...ScheduledParts } }`,
  [ScheduledParts],
);
export const ResolvePublication = graphql(`
  mutation ResolvePublication(
    $id: ID!
    $published: Boolean!
    $externalId: String
    $url: String
    $publishAgain: Boolean!
    $lastCallAt: DateTime
    $key: String
  ) {
    resolvePublication(
      id: $id
      published: $published
      externalId: $externalId
      url: $url
      publishAgain: $publishAgain
      lastCallAt: $lastCallAt
      idempotencyKey: $key
    ) { id state }
  }
`);

export const RetryPublication = graphql(`
  mutation RetryPublication($id: ID!, $key: String) {
    retryPublication(publicationId: $id, idempotencyKey: $key) { id state }
  }
`);

/** Posts with a publication that may need a person, oldest first. */
export const PostsNeedingAttention = graphql(
  `query PostsNeedingAttention($oldest: Timestamp!, $states: [ScheduledPostState!]!, $limit: Int!) {
    page: scheduledPosts(oldest: $oldest, states: $states, limit: $limit) { items { ...ScheduledParts } }
  }`,
  [ScheduledParts],
);

export const Accounts = graphql(
  `query Accounts {
    connectedAccounts {
      id network name handle connectedAt disconnectedAt credentialsExpireAt renewsCredentials
      attention { reason }
    }
    browserNetworks
  }`,
);
export type ConnectedAccount = ResultOf<typeof Accounts>["connectedAccounts"][number];
export type Network = ConnectedAccount["network"];

export const ConnectAccount = graphql(
  `mutation ConnectAccount($input: ConnectAccountInput!) { connectAccount(input: $input) { id name network } }`,
);
export const ConnectInBrowser = graphql(
  `mutation ConnectInBrowser($input: ConnectAccountInBrowserInput!) {
    connectAccountInBrowser(input: $input) { url }
  }`,
);
export const ReconnectInBrowser = graphql(
  `mutation ReconnectInBrowser($id: ID!) { reconnectAccountInBrowser(accountId: $id) { url } }`,
);
export const ReplaceCredentials = graphql(
  `mutation ReplaceCredentials($input: ReplaceAccountCredentialsInput!) {
    replaceAccountCredentials(input: $input) { id handle verifiedAt }
  }`,
);
export const DisconnectAccount = graphql(
  `mutation DisconnectAccount($id: ID!) { disconnectAccount(id: $id) { id disconnectedAt } }`,
);

export const MediaLibrary = graphql(
  `query MediaLibrary($after: ID, $limit: Int!) {
    mediaLibrary(after: $after, limit: $limit) { ...AttachmentParts }
  }`,
  [AttachmentParts],
);
export const AddToLibrary = graphql(
  `mutation AddToLibrary($uploadId: ID!, $altText: String!) {
    addToLibrary(uploadId: $uploadId, altText: $altText) { id }
  }`,
);
export const RemoveFromLibrary = graphql(
  `mutation RemoveFromLibrary($uploadId: ID!) { removeFromLibrary(uploadId: $uploadId) }`,
);

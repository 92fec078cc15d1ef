/** API operations of reports about messages, posts and people. */
import { graphql, type ResultOf } from "../api/graphql";

const ReportParts = graphql(`
  fragment ReportParts on ContentReport {
    id
    subject
    subjectId
    community { id name }
    author { id handle name avatarUrl }
    reporter { id handle name avatarUrl }
    category
    text
    contentText
    messagesBefore { author { id name } postedAt text }
    reportedAt
    state
    decision
    outcome
    note
    decidedBy { id name }
    decidedAt
    banUntil
    failure
  }
`);
export type ContentReport = ResultOf<typeof ReportParts>;
export type ReportSubject = ContentReport["subject"];
export type ReportCategory = ContentReport["category"];
export type ReportDecision = NonNullable<ContentReport["decision"]>;

export const ContentReports = graphql(
  `query ContentReports($communityId: ID, $state: ContentReportState, $after: ID, $limit: Int!) {
    contentReports(communityId: $communityId, state: $state, after: $after, limit: $limit) { ...ReportParts }
  }`,
  [ReportParts],
);
export const ReportContent = graphql(`
  mutation ReportContent(
    $subject: ContentReportSubject!, $id: ID!, $category: ContentReportCategory!, $text: String!
  ) {
    reportContent(subject: $subject, subjectId: $id, category: $category, text: $text)
  }
`);
export const DecideContentReport = graphql(
  `mutation DecideContentReport($id: ID!, $decision: ContentReportDecision!, $note: String!, $banUntil: DateTime) {
    decideContentReport(contentReportId: $id, decision: $decision, note: $note, banUntil: $banUntil) {
      ...ReportParts
    }
  }`,
  [ReportParts],
);
export const ContentReportEvents = graphql(`
  subscription ContentReportEvents($communityId: ID, $since: Cursor) {
    contentReportEvents(communityId: $communityId, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
    }
  }
`);

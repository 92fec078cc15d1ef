/** API operations of the calls screens. */
import { graphql, type ResultOf, type VariablesOf } from "../api/graphql";

export const JobParts = graphql(`
  fragment JobParts on CallJob {
    id
    timestamp
    name
    scenario
    state
    createdAt
    startAt
    window { start end timeZone weekdays }
    progress {
      total
      queued
      active
      completed
      failed
      unknown
      skipped
      cancelled
      outcomes { outcome count }
    }
    estimatedEndAt
    rowErrorCount
  }
`);
export type CallJob = ResultOf<typeof JobParts>;
export type CallJobState = CallJob["state"];
export type CallJobProgress = CallJob["progress"];
export type CallOutcome = CallJobProgress["outcomes"][number]["outcome"];

export const TaskParts = graphql(`
  fragment TaskParts on CallTask {
    id
    jobId
    row
    phoneNumber
    variables { name value }
    state
    outcome
    attempts
    startedAt
    endedAt
    error
    recording { url }
  }
`);
export type CallTask = ResultOf<typeof TaskParts>;
export type CallTaskState = CallTask["state"];

export const LimitParts = graphql(`
  fragment LimitParts on CallLimits { id concurrentCalls callsPerSecond activeCalls }
`);
export type CallLimits = ResultOf<typeof LimitParts>;

export const CallJobs = graphql(
  `query CallJobs($latest: Timestamp!, $inclusive: Boolean!) {
    page: callJobs(latest: $latest, inclusive: $inclusive, limit: 30) { hasOlder hasNewer items { ...JobParts } }
  }`,
  [JobParts],
);
export const CallJobById = graphql(`query CallJobById($id: ID!) { callJob(id: $id) { ...JobParts } }`, [
  JobParts,
]);
export const CurrentCallLimits = graphql(`query CurrentCallLimits { callLimits { ...LimitParts } }`, [
  LimitParts,
]);

export const TelephonyLines = graphql(`query TelephonyLines { telephonyLines { id provider callerNumber } }`);
export type TelephonyLine = ResultOf<typeof TelephonyLines>["telephonyLines"][number];

export const CallTasks = graphql(
  `query CallTasks($id: ID!, $states: [CallTaskState!], $afterRow: Int!, $limit: Int!) {
    callJob(id: $id) { id tasks(states: $states, afterRow: $afterRow, limit: $limit) { ...TaskParts } }
  }`,
  [TaskParts],
);
export const CallTimesPage = graphql(`
  query CallTimes($id: ID!, $afterRow: Int!) {
    callJob(id: $id) {
      id
      tasks(states: [DIALLING, IN_CALL, COMPLETED, FAILED, UNKNOWN, SKIPPED], afterRow: $afterRow, limit: 999) {
        row
        startedAt
        endedAt
      }
    }
  }
`);
export const RowErrors = graphql(`
  query RowErrors($id: ID!, $afterRow: Int!) {
    callJob(id: $id) { id rowErrors(afterRow: $afterRow, limit: 200) { row column message } }
  }
`);

export const CallEvents = graphql(
  `subscription CallEvents($since: Cursor) {
    jobEvents(since: $since) {
      __typename
      ... on Event { cursor at }
      ... on StreamReady { resumed }
      ... on CallJobChanged { job { ...JobParts } }
      ... on CallTaskChanged { task { ...TaskParts } }
      ... on CallLimitsChanged { limits { ...LimitParts } }
    }
  }`,
  [JobParts, TaskParts, LimitParts],
);

export const CheckCallList = graphql(`
  query CheckCallList($input: LaunchCallJobInput!) {
    checkCallList(input: $input) {
      rows
      rowErrorCount
      rowErrors(limit: 200) { row column message }
      estimatedEndAt
    }
  }
`);
export type ListCheck = ResultOf<typeof CheckCallList>["checkCallList"];
export type RowError = ListCheck["rowErrors"][number];
export type LaunchInput = VariablesOf<typeof CheckCallList>["input"];

export const LaunchCallJob = graphql(
  `mutation LaunchCallJob($input: LaunchCallJobInput!) { job: launchCallJob(input: $input) { ...JobParts } }`,
  [JobParts],
);
export const PauseCallJob = graphql(
  `mutation PauseCallJob($id: ID!) { job: pauseCallJob(id: $id) { ...JobParts } }`,
  [JobParts],
);
export const ResumeCallJob = graphql(
  `mutation ResumeCallJob($id: ID!) { job: resumeCallJob(id: $id) { ...JobParts } }`,
  [JobParts],
);
export const CancelCallJob = graphql(
  `mutation CancelCallJob($id: ID!) { job: cancelCallJob(id: $id) { ...JobParts } }`,
  [JobParts],
);
export const SetCallLimits = graphql(
  `mutation SetCallLimits($input: CallLimitsInput!) { setCallLimits(input: $input) { ...LimitParts } }`,
  [LimitParts],
);

export const DoNotCall = graphql(
  `query DoNotCall($numbers: [String!]!) { doNotCall(phoneNumbers: $numbers) }`,
);
export const AddDoNotCall = graphql(
  `mutation AddDoNotCall($numbers: [String!]!) { count: addDoNotCall(phoneNumbers: $numbers) }`,
);
export const RemoveDoNotCall = graphql(
  `mutation RemoveDoNotCall($numbers: [String!]!) { count: removeDoNotCall(phoneNumbers: $numbers) }`,
);

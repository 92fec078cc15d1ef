/** API operations of the viewer's own data. */
import { graphql, type ResultOf } from "../api/graphql";
import { SessionParts } from "../session/browsers/session-parts";

const DataExportParts = graphql(`
  fragment DataExportParts on DataExport {
    id state requestedAt expiresAt filesDone files sizeBytes failure downloadUrl
  }
`);
export type DataExport = ResultOf<typeof DataExportParts>;

export const MyDataExport = graphql(`query MyDataExport { myDataExport { ...DataExportParts } }`, [
  DataExportParts,
]);
export const ExportMyData = graphql(`mutation ExportMyData { exportMyData { ...DataExportParts } }`, [
  DataExportParts,
]);
export const DataExportEvents = graphql(
  `subscription DataExportEvents($id: ID!, $since: Cursor) {
    jobEvents(jobId: $id, since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
      ... on DataExportChanged { export { ...DataExportParts } }
    }
  }`,
  [DataExportParts],
);

const PasskeyParts = graphql(`
  fragment PasskeyParts on Passkey { id name synced createdAt lastUsedAt }
`);
export type Passkey = ResultOf<typeof PasskeyParts>;

export const MyPasskeys = graphql(
  `query MyPasskeys { myPasskeys { ...PasskeyParts } mySessions { method current } }`,
  [PasskeyParts],
);
export const RenamePasskey = graphql(`
  mutation RenamePasskey($id: ID!, $name: String!) { renamePasskey(id: $id, name: $name) { id } }
`);
export const RemovePasskey = graphql(`mutation RemovePasskey($id: ID!) { removePasskey(id: $id) { id } }`);

export const MySessions = graphql(`query MySessions { mySessions { ...SessionParts } }`, [SessionParts]);
export const EndSession = graphql(`mutation EndSession($id: ID!) { endSession(id: $id) { id } }`);
export const EndOtherSessions = graphql(`mutation EndOtherSessions { endOtherSessions }`);

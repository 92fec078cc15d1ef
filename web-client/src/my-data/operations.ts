/** API operations of the viewer's own data. */
import { graphql, type ResultOf } from "../api/graphql";

const SessionParts = graphql(`
  fragment SessionParts on Session {
    id method startedAt lastUsedAt expiresAt address userAgent current
  }
`);
export type Session = ResultOf<typeof SessionParts>;

export const MySessions = graphql(`query MySessions { mySessions { ...SessionParts } }`, [SessionParts]);
export const EndSession = graphql(`mutation EndSession($id: ID!) { endSession(id: $id) { id } }`);
export const EndOtherSessions = graphql(`mutation EndOtherSessions { endOtherSessions }`);

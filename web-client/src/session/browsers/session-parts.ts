/** The parts of a session that screens show. */
import { graphql, type ResultOf } from "../../api/graphql";

export const SessionParts = graphql(`
  fragment SessionParts on Session {
    id method startedAt lastUsedAt expiresAt address userAgent current
  }
`);
export type Session = ResultOf<typeof SessionParts>;

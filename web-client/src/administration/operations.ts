/** API operations of the administration. */
import { graphql, type ResultOf } from "../api/graphql";
import { SessionParts } from "../session/browsers/session-parts";

const AdministeredUserParts = graphql(`
  fragment AdministeredUserParts on User { id handle name avatarUrl roles deactivated }
`);
export type AdministeredUser = ResultOf<typeof AdministeredUserParts>;
export type OrganizationRole = AdministeredUser["roles"][number];

export const OrganizationUsers = graphql(
  `query OrganizationUsers($query: String, $role: Role, $deactivated: Boolean, $after: ID, $limit: Int!) {
    organizationUsers(query: $query, role: $role, deactivated: $deactivated, after: $after, limit: $limit) {
      ...AdministeredUserParts
    }
  }`,
  [AdministeredUserParts],
);
export const SetUserRoles = graphql(
  `mutation SetUserRoles($id: ID!, $roles: [Role!]!) {
    setUserRoles(userId: $id, roles: $roles) { ...AdministeredUserParts }
  }`,
  [AdministeredUserParts],
);
export const DeactivateUser = graphql(
  `mutation DeactivateUser($id: ID!, $reason: String!) {
    deactivateUser(userId: $id, reason: $reason) { ...AdministeredUserParts }
  }`,
  [AdministeredUserParts],
);
export const ReactivateUser = graphql(
  `mutation ReactivateUser($id: ID!) { reactivateUser(userId: $id) { ...AdministeredUserParts } }`,
  [AdministeredUserParts],
);
export const EndUserSessions = graphql(`
  mutation EndUserSessions($id: ID!, $sessionId: ID, $reason: String!) {
    endUserSessions(userId: $id, sessionId: $sessionId, reason: $reason)
  }
`);
export const UserSessions = graphql(
  `query UserSessions($userId: ID!) { userSessions(userId: $userId) { ...SessionParts } }`,
  [SessionParts],
);

const AuditEntryParts = graphql(`
  fragment AuditEntryParts on AuditEntry {
    id
    at
    actorId
    actor { id handle name avatarUrl }
    action
    targetKind
    targetId
    targetUser { id handle name avatarUrl }
    details { name value }
    address
    userAgent
  }
`);
export type AuditEntry = ResultOf<typeof AuditEntryParts>;
export type AuditAction = AuditEntry["action"];

export const AuditLog = graphql(
  `query AuditLog(
    $since: DateTime, $until: DateTime, $actorId: ID, $targetId: ID, $action: AuditAction, $after: ID, $limit: Int!
  ) {
    auditLog(
      since: $since, until: $until, actorId: $actorId, targetId: $targetId, action: $action, after: $after, limit: $limit
    ) { ...AuditEntryParts }
  }`,
  [AuditEntryParts],
);

export const UserName = graphql(`query UserName($id: ID!) { user(id: $id) { id handle name } }`);
export const CommunityName = graphql(`query CommunityName($id: ID!) { community(id: $id) { id name } }`);

/** API operations on a community and its members, most of them for owners and moderators. */
import { graphql, type ResultOf } from "../api/graphql";

const CommunityParts = graphql(`
  fragment CommunityParts on Community {
    id name description pictureUrl bannerUrl memberCount visibility joined muted viewerRole viewerMutedUntil archivedAt
  }
`);
export const CommunityDetails = graphql(
  `query CommunityDetails($id: ID!) { community(id: $id) { ...CommunityParts } }`,
  [CommunityParts],
);
export type Community = NonNullable<ResultOf<typeof CommunityDetails>["community"]>;
export type CommunityRole = NonNullable<Community["viewerRole"]>;
export type CommunityVisibility = Community["visibility"];

const MemberParts = graphql(`
  fragment MemberParts on CommunityMember { user { id handle name avatarUrl } role joinedAt mutedUntil }
`);
export type CommunityMember = ResultOf<typeof MemberParts>;
export type Person = CommunityMember["user"];

export const CommunityMembers = graphql(
  `query CommunityMembers($id: ID!, $role: CommunityRole, $userId: ID, $after: ID, $limit: Int!) {
    communityMembers(communityId: $id, role: $role, userId: $userId, afterUserId: $after, limit: $limit) {
      ...MemberParts
    }
  }`,
  [MemberParts],
);
export const FindPeople = graphql(`
  query FindPeople($query: String!, $communityId: ID!) {
    users(query: $query, communityId: $communityId, limit: 6) { id handle name avatarUrl }
  }
`);
export const PersonById = graphql(
  `query PersonById($id: ID!) { user(id: $id) { id handle name avatarUrl } }`,
);

export const SetCommunityRole = graphql(
  `mutation SetCommunityRole($id: ID!, $userId: ID!, $role: CommunityRole!) {
    setCommunityRole(communityId: $id, userId: $userId, role: $role) { ...MemberParts }
  }`,
  [MemberParts],
);
export const MuteMember = graphql(
  `mutation MuteMember($id: ID!, $userId: ID!, $until: DateTime!) {
    muteMember(communityId: $id, userId: $userId, until: $until) { ...MemberParts }
  }`,
  [MemberParts],
);
export const UnmuteMember = graphql(`
  mutation UnmuteMember($id: ID!, $userId: ID!) { unmuteMember(communityId: $id, userId: $userId) { id } }
`);
export const KickMember = graphql(`
  mutation KickMember($id: ID!, $userId: ID!) { kickMember(communityId: $id, userId: $userId) { id memberCount } }
`);
export const AddMember = graphql(
  `mutation AddMember($id: ID!, $userId: ID!) { addMember(communityId: $id, userId: $userId) { ...MemberParts } }`,
  [MemberParts],
);

const BanParts = graphql(`
  fragment BanParts on CommunityBan {
    user { id handle name avatarUrl }
    bannedBy { id handle name avatarUrl }
    reason
    bannedAt
    until
  }
`);
export type CommunityBan = ResultOf<typeof BanParts>;
export const CommunityBans = graphql(
  `query CommunityBans($id: ID!, $after: ID, $limit: Int!) {
    communityBans(communityId: $id, afterUserId: $after, limit: $limit) { ...BanParts }
  }`,
  [BanParts],
);
export const BanMember = graphql(
  `mutation BanMember($id: ID!, $userId: ID!, $reason: String!, $until: DateTime) {
    banMember(communityId: $id, userId: $userId, reason: $reason, until: $until) { ...BanParts }
  }`,
  [BanParts],
);
export const UnbanMember = graphql(`
  mutation UnbanMember($id: ID!, $userId: ID!) { unbanMember(communityId: $id, userId: $userId) { id } }
`);

const RequestParts = graphql(`
  fragment RequestParts on JoinRequest { user { id handle name avatarUrl } message requestedAt }
`);
export type JoinRequest = ResultOf<typeof RequestParts>;
export const JoinRequests = graphql(
  `query JoinRequests($id: ID!, $after: ID, $limit: Int!) {
    joinRequests(communityId: $id, afterUserId: $after, limit: $limit) { ...RequestParts }
  }`,
  [RequestParts],
);
export const DecideJoinRequest = graphql(`
  mutation DecideJoinRequest($id: ID!, $userId: ID!, $approve: Boolean!) {
    decideJoinRequest(communityId: $id, userId: $userId, approve: $approve) { id memberCount }
  }
`);

export const UpdateCommunity = graphql(
  `mutation UpdateCommunity($id: ID!, $name: String, $description: String, $visibility: CommunityVisibility) {
    updateCommunity(id: $id, name: $name, description: $description, visibility: $visibility) { ...CommunityParts }
  }`,
  [CommunityParts],
);
export const ArchiveCommunity = graphql(
  `mutation ArchiveCommunity($id: ID!) { archiveCommunity(communityId: $id) { ...CommunityParts } }`,
  [CommunityParts],
);
export const UnarchiveCommunity = graphql(
  `mutation UnarchiveCommunity($id: ID!) { unarchiveCommunity(communityId: $id) { ...CommunityParts } }`,
  [CommunityParts],
);

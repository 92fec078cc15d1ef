/** API operations of invitations. */
import { graphql, type ResultOf } from "../../api/graphql";

const InvitationParts = graphql(`
  fragment InvitationParts on Invitation {
    id
    state
    role
    community { id name }
    email
    maxUses
    uses
    creator { id name }
    createdAt
    expiresAt
  }
`);
export type Invitation = ResultOf<typeof InvitationParts>;

export const Invitations = graphql(
  `query Invitations($after: ID, $limit: Int!) {
    invitations(after: $after, limit: $limit) { ...InvitationParts }
  }`,
  [InvitationParts],
);
export const CreateInvitation = graphql(
  `mutation CreateInvitation($input: CreateInvitationInput!) {
    createInvitation(input: $input) { invitation { ...InvitationParts } url }
  }`,
  [InvitationParts],
);
export const OwnCommunities = graphql(
  `query OwnCommunities($limit: Int!) { communities(joined: true, limit: $limit) { id name viewerRole } }`,
);
export const RevokeInvitation = graphql(
  `mutation RevokeInvitation($id: ID!) { revokeInvitation(id: $id) { ...InvitationParts } }`,
  [InvitationParts],
);

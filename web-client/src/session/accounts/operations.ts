/** API operation of invitations. */
import { graphql } from "../../api/graphql";

export const AcceptInvitation = graphql(`
  mutation AcceptInvitation($token: String!) { acceptInvitation(token: $token) { id roles } }
`);

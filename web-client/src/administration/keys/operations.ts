/** API operations of service keys. */
import { graphql, type ResultOf } from "../../api/graphql";

const ServiceKeyParts = graphql(`
  fragment ServiceKeyParts on ServiceKey {
    id name account { id } scopes active createdAt createdBy { name deactivated } expiresAt lastUsedAt previousSecretUntil
    revokedAt needsRotation
  }
`);
export type ServiceKey = ResultOf<typeof ServiceKeyParts>;

export const ServiceKeys = graphql(
  `query ServiceKeys($after: ID, $limit: Int!) {
    serviceKeys(after: $after, limit: $limit) { ...ServiceKeyParts }
  }`,
  [ServiceKeyParts],
);
export const CreateServiceKey = graphql(
  `mutation CreateServiceKey($input: CreateServiceKeyInput!) {
    createServiceKey(input: $input) { key { ...ServiceKeyParts } secret }
  }`,
  [ServiceKeyParts],
);
export const RotateServiceKey = graphql(
  `mutation RotateServiceKey($input: RotateServiceKeyInput!) {
    rotateServiceKey(input: $input) { key { ...ServiceKeyParts } secret }
  }`,
  [ServiceKeyParts],
);
export const RevokeServiceKey = graphql(
  `mutation RevokeServiceKey($id: ID!) { revokeServiceKey(serviceKeyId: $id) { ...ServiceKeyParts } }`,
  [ServiceKeyParts],
);

/** API operations of the organization's stamps, and of the packs that people own. */
import { graphql, type ResultOf } from "../api/graphql";

const StampPackParts = graphql(`
  fragment StampPackParts on StampPack {
    id name availability rule { kind threshold } owned stamps { id name emoji imageUrl thumbnailUrl }
  }
`);
export const StampPacks = graphql(`query StampPacks { stampPacks { ...StampPackParts } }`, [StampPackParts]);
export type StampPack = ResultOf<typeof StampPacks>["stampPacks"][number];
export type OwnStamp = StampPack["stamps"][number];
export type StampPackAvailability = StampPack["availability"];
export type StampRule = NonNullable<StampPack["rule"]>;
export type StampRuleKind = StampRule["kind"];

/** The viewer's counts, which only the list of stamps shows. */
export const StampPackProgress = graphql(
  `query StampPackProgress { stampPacks { ...StampPackParts progress } }`,
  [StampPackParts],
);
export type StampPackWithProgress = ResultOf<typeof StampPackProgress>["stampPacks"][number];

export const CreateStampPack = graphql(
  `mutation CreateStampPack($name: String!) { createStampPack(name: $name) { id name } }`,
);
export const RemoveStampPack = graphql(
  `mutation RemoveStampPack($packId: ID!) { removeStampPack(packId: $packId) { id } }`,
);
export const SetStampPackAvailability = graphql(
  `mutation SetStampPackAvailability($packId: ID!, $availability: StampPackAvailability!, $rule: StampRuleInput) {
    setStampPackAvailability(packId: $packId, availability: $availability, rule: $rule) { ...StampPackParts }
  }`,
  [StampPackParts],
);
export const GiveStampPack = graphql(`
  mutation GiveStampPack($packId: ID!, $userId: ID!, $communityId: ID) {
    giveStampPack(packId: $packId, userId: $userId, communityId: $communityId) { id name owned }
  }
`);
export const StampPackOwnerships = graphql(`
  query StampPackOwnerships($userId: ID!) {
    stampPackOwnerships(userId: $userId) { pack { id name availability } ownedSince giver { id name } }
  }
`);
export type OwnedPack = ResultOf<typeof StampPackOwnerships>["stampPackOwnerships"][number];
export const TakeBackStampPack = graphql(`
  mutation TakeBackStampPack($packId: ID!, $userId: ID!) {
    takeBackStampPack(packId: $packId, userId: $userId) { id }
  }
`);
export const AddStamp = graphql(`
  mutation AddStamp($input: AddStampInput!) {
    addStamp(input: $input) { id stamps { id name emoji imageUrl thumbnailUrl } }
  }
`);
export const RemoveStamp = graphql(`
  mutation RemoveStamp($packId: ID!, $stampName: String!) {
    removeStamp(packId: $packId, stampName: $stampName) { id stamps { id name emoji imageUrl thumbnailUrl } }
  }
`);

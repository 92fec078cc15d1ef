/** API operations of reports of addresses and of decisions by hand. */
import { graphql, type ResultOf } from "../api/graphql";
import { AddressParts } from "./operations";

export const AddressReport = graphql(
  `query AddressReport($address: String!) {
    addressReport(address: $address) {
      standing { ...AddressParts }
      addressHash
      policyVersion
      blockedSince
      bounces { bounceClass code source count at }
      lastDeliveryAt
      lastComplaintAt
      changes { id kind at byId by { id name } reason domain }
    }
  }`,
  [AddressParts],
);
export type Report = ResultOf<typeof AddressReport>["addressReport"];

export const BlockAddresses = graphql(
  `mutation BlockAddresses($addresses: [String!]!, $reason: String!) {
    blockAddresses(addresses: $addresses, reason: $reason) { ...AddressParts }
  }`,
  [AddressParts],
);
export const UnblockAddresses = graphql(
  `mutation UnblockAddresses($addresses: [String!]!, $reason: String!) {
    unblockAddresses(addresses: $addresses, reason: $reason) { ...AddressParts }
  }`,
  [AddressParts],
);

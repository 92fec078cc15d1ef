/** API operations of the mail screens. */
import { graphql, type ResultOf } from "../api/graphql";

export const DomainParts = graphql(`
  fragment DomainParts on DomainStanding {
    id
    domain
    success
    softBounce
    hardBounce
    blocked
    verdict { rule detail }
  }
`);
export type DomainStanding = ResultOf<typeof DomainParts>;
export type VerdictRule = DomainStanding["verdict"]["rule"];

export const AddressParts = graphql(
  `fragment AddressParts on AddressStanding {
    address
    normalized
    blocked
    verdict { rule detail }
    success
    softBounce
    hardBounce
    lastEventAt
    domain { ...DomainParts }
  }`,
  [DomainParts],
);
export type AddressStanding = ResultOf<typeof AddressParts>;

export const AddressBook = graphql(
  `query AddressBook($addresses: [String!]!) { addressBook(addresses: $addresses) { ...AddressParts } }`,
  [AddressParts],
);
export const DomainStandings = graphql(
  `query DomainStandings($domains: [String!]!) { domainStandings(domains: $domains) { ...DomainParts } }`,
  [DomainParts],
);
export const BounceRates = graphql(`
  query BounceRates($domain: String, $from: DateTime!, $to: DateTime!) {
    bounceRates(domain: $domain, from: $from, to: $to) { day sent bounced rate complaints complaintRate }
  }
`);
export const BounceRateEvents = graphql(`
  subscription BounceRateEvents($since: Cursor) {
    bounceRateEvents(since: $since) {
      __typename
      ... on Event { cursor }
      ... on StreamReady { resumed }
    }
  }
`);
export type DailyBounceRate = ResultOf<typeof BounceRates>["bounceRates"][number];

export const WorstDomains = graphql(`
  query WorstDomains($day: DateTime!) { worstDomains(day: $day) { domain sent bounced rate } }
`);
export const BounceAlarms = graphql(`
  query BounceAlarms { bounceAlarms { day domain raisedAt sentAt } }
`);

export const UnblockAddress = graphql(
  `mutation UnblockAddress($address: String!, $reason: String!) {
    unblockAddress(address: $address, reason: $reason) { ...AddressParts }
  }`,
  [AddressParts],
);
export const SetDomainBlocked = graphql(
  `mutation SetDomainBlocked($domain: String!, $blocked: Boolean, $reason: String!) {
    setDomainBlocked(domain: $domain, blocked: $blocked, reason: $reason) { ...DomainParts }
  }`,
  [DomainParts],
);

/** API operations of mail policies. */
import { graphql, type ResultOf, type VariablesOf } from "../../api/graphql";

export const PolicyParts = graphql(`
  fragment PolicyParts on MailPolicy {
    version
    treatments { bounceClass treatment }
    hardBounces
    softBounceDays
    softWindowDays
    softBlockDays
    complaintsBlock
    keepAddresses
    reason
    setAt
    setBy { id name }
  }
`);
export type MailPolicy = ResultOf<typeof PolicyParts>;

export const PresentPolicy = graphql(`query PresentPolicy { mailPolicy { ...PolicyParts } }`, [PolicyParts]);

export const PolicyVersions = graphql(`query PolicyVersions { mailPolicyVersions { ...PolicyParts } }`, [
  PolicyParts,
]);

export const TryPolicy = graphql(`
  query TryPolicy($policy: MailPolicyInput!) {
    mailPolicyDryRun(policy: $policy) {
      version
      checked
      blocked
      freed
      nextAfter
      changes { addressHash domain address blocked before { rule } after { rule } }
    }
  }
`);
export type MailPolicyInput = VariablesOf<typeof TryPolicy>["policy"];
export type DryRun = ResultOf<typeof TryPolicy>["mailPolicyDryRun"];

export const SetPolicy = graphql(
  `mutation SetPolicy($policy: MailPolicyInput!, $afterVersion: Int!, $reason: String!) {
    setMailPolicy(policy: $policy, afterVersion: $afterVersion, reason: $reason) { ...PolicyParts }
  }`,
  [PolicyParts],
);

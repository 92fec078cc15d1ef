/** API operations of retention rules. */
import { graphql, type ResultOf } from "../api/graphql";

const RetentionRuleParts = graphql(`
  fragment RetentionRuleParts on RetentionRule {
    data days defaultDays minDays maxDays setAt setBy { name }
  }
`);
export type RetentionRule = ResultOf<typeof RetentionRuleParts>;

export const RetentionRules = graphql(`query RetentionRules { retentionRules { ...RetentionRuleParts } }`, [
  RetentionRuleParts,
]);
export const SetRetentionRule = graphql(
  `mutation SetRetentionRule($data: RetainedData!, $days: Int) {
    setRetentionRule(data: $data, days: $days) { ...RetentionRuleParts }
  }`,
  [RetentionRuleParts],
);

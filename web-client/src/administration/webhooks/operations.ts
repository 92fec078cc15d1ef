/** API operations of webhooks. */
import { graphql, type ResultOf } from "../../api/graphql";

const WebhookParts = graphql(`
  fragment WebhookParts on Webhook {
    id name url format account { id name } eventTypes communityIds topicIds jobIds createdAt lastDeliveredAt
    failingSince lastError nextTryAt disabledAt disabledReason previousSecretUntil
  }
`);
export type Webhook = ResultOf<typeof WebhookParts>;

const WebhookDeliveryParts = graphql(`
  fragment WebhookDeliveryParts on WebhookDelivery {
    id eventType messageId at outcome request status answer durationMs
  }
`);
export type WebhookDelivery = ResultOf<typeof WebhookDeliveryParts>;

export const Webhooks = graphql(`query Webhooks { webhooks { ...WebhookParts } }`, [WebhookParts]);
export const WebhookDeliveries = graphql(
  `query WebhookDeliveries($id: ID!, $outcome: WebhookDeliveryOutcome, $after: ID, $limit: Int!) {
    webhookDeliveries(webhookId: $id, outcome: $outcome, after: $after, limit: $limit) { ...WebhookDeliveryParts }
  }`,
  [WebhookDeliveryParts],
);
export const WebhookChoices = graphql(
  `query WebhookChoices($limit: Int!) {
    serviceKeys(limit: $limit) { id name scopes active account { id } }
    communities(limit: $limit) { id name }
  }`,
);
export type WebhookChoices = ResultOf<typeof WebhookChoices>;

export const CreateWebhook = graphql(
  `mutation CreateWebhook($input: CreateWebhookInput!) {
    createWebhook(input: $input) { webhook { ...WebhookParts } secret }
  }`,
  [WebhookParts],
);
export const UpdateWebhook = graphql(
  `mutation UpdateWebhook($input: UpdateWebhookInput!) { updateWebhook(input: $input) { ...WebhookParts } }`,
  [WebhookParts],
);
export const RotateWebhookSecret = graphql(
  `mutation RotateWebhookSecret($input: RotateWebhookSecretInput!) {
    rotateWebhookSecret(input: $input) { webhook { ...WebhookParts } secret }
  }`,
  [WebhookParts],
);
export type IssuedWebhook = ResultOf<typeof RotateWebhookSecret>["rotateWebhookSecret"];

export const EnableWebhook = graphql(
  `mutation EnableWebhook($id: ID!) { enableWebhook(webhookId: $id) { ...WebhookParts } }`,
  [WebhookParts],
);
export const DisableWebhook = graphql(
  `mutation DisableWebhook($id: ID!) { disableWebhook(webhookId: $id) { ...WebhookParts } }`,
  [WebhookParts],
);
export const DeleteWebhook = graphql(`mutation DeleteWebhook($id: ID!) { deleteWebhook(webhookId: $id) }`);
export const TestWebhook = graphql(
  `mutation TestWebhook($id: ID!) { testWebhook(webhookId: $id) { ...WebhookDeliveryParts } }`,
  [WebhookDeliveryParts],
);
export const RedeliverWebhookEvent = graphql(
  `mutation RedeliverWebhookEvent($id: ID!) {
    redeliverWebhookEvent(deliveryId: $id) { ...WebhookDeliveryParts }
  }`,
  [WebhookDeliveryParts],
);
export const ReplayWebhook = graphql(
  `mutation ReplayWebhook($input: ReplayWebhookInput!) { replayWebhook(input: $input) { ...WebhookParts } }`,
  [WebhookParts],
);

/** API operations of offline notifications: settings and devices. */
import { graphql, type ResultOf } from "../api/graphql";

export const NotificationSettings = graphql(`
  query NotificationSettings {
    pushKey
    pushDevices { id userAgent registeredAt current }
    notificationSettings {
      ways { category push mail }
      levels { kind placeId level topic { title } community { name } }
      quietHours { start end timeZone }
      digest
      digestAddress
      digestObstacle
      language
    }
  }
`);
type NotificationSettingsAnswer = ResultOf<typeof NotificationSettings>;
export type LoadedNotificationSettings = NotificationSettingsAnswer["notificationSettings"];
export type DigestPeriod = LoadedNotificationSettings["digest"];
export type NotificationWays = LoadedNotificationSettings["ways"][number];
export type NotificationPlaceLevel = LoadedNotificationSettings["levels"][number];
export type NotificationLevel = NotificationPlaceLevel["level"];
export type QuietHours = NonNullable<LoadedNotificationSettings["quietHours"]>;
export type PushDevice = NotificationSettingsAnswer["pushDevices"][number];

export const PlaceLevels = graphql(`
  query PlaceLevels { notificationSettings { levels { placeId level } } }
`);
/** The settings that decide about one alert, and the topic of its message. */
export const AlertRules = graphql(`
  query AlertRules($topicId: ID!, $withTopic: Boolean!) {
    notificationSettings {
      ways { category push }
      levels { kind placeId level }
      quietHours { start end timeZone }
    }
    topic(id: $topicId) @include(if: $withTopic) { id readUpTo parentMessageId community { id } }
  }
`);
export const TopicOfMessage = graphql(`query TopicOfMessage($id: ID!) { message(id: $id) { id topicId } }`);

export const SetNotificationSettings = graphql(`
  mutation SetNotificationSettings($input: NotificationSettingsInput!) {
    setNotificationSettings(input: $input) { digest digestAddress digestObstacle }
  }
`);

export const SetTopicNotifications = graphql(`
  mutation SetTopicNotifications($id: ID!, $level: NotificationLevel) {
    done: setTopicNotifications(topicId: $id, level: $level) { language }
  }
`);

export const SetCommunityNotifications = graphql(`
  mutation SetCommunityNotifications($id: ID!, $level: NotificationLevel) {
    done: setCommunityNotifications(communityId: $id, level: $level) { language }
  }
`);

export const RegisterPushDevice = graphql(`
  mutation RegisterPushDevice($input: RegisterPushDeviceInput!) { registerPushDevice(input: $input) { id } }
`);

export const RemovePushDevice = graphql(
  `mutation RemovePushDevice($id: ID!) { removePushDevice(id: $id) { id } }`,
);

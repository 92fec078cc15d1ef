/** The levels of the joined communities, and of topics that have a level of their own. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { useJoinedCommunities } from "../chat/sidebar/joined-communities";
import { SelectField } from "../ui/fields/select-field";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import {
  type NotificationLevel,
  type NotificationPlaceLevel,
  SetCommunityNotifications,
  SetTopicNotifications,
} from "./operations";
import { SettingsSection } from "./section";

const LEVELS: readonly NotificationLevel[] = ["ALL", "MENTIONS", "NOTHING"];

export function NotificationLevelList({ levels }: { levels: readonly NotificationPlaceLevel[] }) {
  const { t } = useTranslation();
  const { communities } = useJoinedCommunities("cache-and-network");
  const levelOf = (id: string) => levels.find(({ placeId }) => placeId === id)?.level ?? null;
  const topics = levels.filter(({ kind }) => kind === "TOPIC");
  if (!communities?.length && !topics.length) return null;
  return (
    <SettingsSection title={t("push.levels")} hint={t("push.levelsHint")}>
      {communities?.map(({ id, name }) => (
        <NotificationLevelField
          key={id}
          id={id}
          name={name}
          level={levelOf(id)}
          mutation={SetCommunityNotifications}
        />
      ))}
      {topics.map(({ placeId, topic, level }) => (
        <NotificationLevelField
          key={placeId}
          id={placeId}
          name={topic?.title ?? t("push.conversation")}
          level={level}
          mutation={SetTopicNotifications}
        />
      ))}
    </SettingsSection>
  );
}

interface NotificationLevelFieldProps {
  id: string;
  name: string;
  level: NotificationLevel | null;
  mutation: typeof SetCommunityNotifications | typeof SetTopicNotifications;
}

function NotificationLevelField({ id, name, level, mutation }: NotificationLevelFieldProps) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [chosen, setChosen] = useState(level);
  async function choose(next: NotificationLevel | null) {
    setChosen(next);
    await request(direct, mutation, { id, level: next }).catch((error) => {
      setChosen(chosen);
      notifyFailure(error);
    });
  }
  return (
    <SelectField
      className="py-2"
      label={name}
      value={chosen}
      values={LEVELS}
      textOf={(each) => t(`push.level.${each}`)}
      emptyText={t("push.level.default")}
      onChange={choose}
    />
  );
}

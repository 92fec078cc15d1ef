/** Which notifications of a topic or a conversation arrive on devices and by mail, and whether it is muted. */
import { useEffect, useId, useState } from "react";
import { request, useApi } from "../api/api";
import { ENDS_OF_OWN_MUTES, type RestrictionEndName, untilOf } from "../moderation/ends";
import { MUTE, UNMUTE } from "../mutes/operations";
import { RadioChoice } from "../ui/fields/radio-choice";
import { SelectField } from "../ui/fields/select-field";
import { SwitchField } from "../ui/fields/switch-field";
import { useTranslation } from "../ui/preferences";
import { LoadingState } from "../ui/states";
import { notifyFailure } from "../ui/toasts";
import { type NotificationLevel, PlaceLevels, SetTopicNotifications } from "./operations";

export interface NotificationPlace {
  /** Id of the topic or conversation. */
  id: string;
  /** The community whose level a topic has by default; null for a conversation. */
  communityId: string | null;
  isMuted: boolean;
}

const LEVELS: readonly NotificationLevel[] = ["ALL", "MENTIONS", "NOTHING"];

type LevelsByPlace = ReadonlyMap<string, NotificationLevel>;

export function NotificationChoices(place: NotificationPlace) {
  const { direct } = useApi();
  const [levels, setLevels] = useState<LevelsByPlace | null>(null);
  useEffect(() => {
    request(direct, PlaceLevels, {}).then(
      ({ notificationSettings }) =>
        setLevels(new Map(notificationSettings.levels.map(({ placeId, level }) => [placeId, level]))),
      notifyFailure,
    );
  }, [direct]);
  return (
    <>
      {levels ? <LevelChoices place={place} levels={levels} /> : <LoadingState rows={3} />}
      <div className="mt-1 border-t border-line px-2">
        <MuteSwitch {...place} />
      </div>
    </>
  );
}

function LevelChoices({ place, levels }: { place: NotificationPlace; levels: LevelsByPlace }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const group = useId();
  const { id, communityId } = place;
  /** The level that applies if the place has none of its own. */
  const inherited = (communityId && levels.get(communityId)) || "ALL";
  const [chosen, setChosen] = useState(levels.get(id) ?? null);

  async function choose(level: NotificationLevel | null) {
    setChosen(level);
    await request(direct, SetTopicNotifications, { id, level }).catch((error) => {
      setChosen(chosen);
      notifyFailure(error);
    });
  }
  const choices: readonly (NotificationLevel | null)[] = communityId ? [null, ...LEVELS] : LEVELS;
  return (
    <fieldset>
      <legend className="px-2 pb-1 font-semibold">{t("push.menuTitle")}</legend>
      {choices.map((level) => (
        <RadioChoice
          key={level}
          group={group}
          title={
            level
              ? t(`push.level.${level}`)
              : t("push.level.community", { level: t(`push.level.${inherited}`) })
          }
          isChosen={level === (communityId ? chosen : (chosen ?? inherited))}
          onChoose={() => void choose(level)}
        />
      ))}
    </fieldset>
  );
}

function MuteSwitch({ id, isMuted }: NotificationPlace) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [end, setEnd] = useState<RestrictionEndName>("never");
  async function change(isOn: boolean) {
    if (isOn) await request(cached, MUTE.TOPIC, { id, until: untilOf(end, new Date()) });
    else await request(cached, UNMUTE.TOPIC, { id });
  }
  return (
    <>
      {!isMuted && (
        <SelectField
          className="py-2"
          label={t("mutes.howLong")}
          value={end}
          values={ENDS_OF_OWN_MUTES}
          textOf={(each) => t(each === "never" ? "mutes.forGood" : `end.${each}`)}
          onChange={setEnd}
        />
      )}
      <SwitchField label={t("push.mute")} hint={t("push.muteHint")} isOn={isMuted} change={change} />
    </>
  );
}

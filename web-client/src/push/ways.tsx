/** The choice of the notifications that are pushed, or that are part of digests. */
import { SwitchField } from "../ui/fields/switch-field";
import { useTranslation } from "../ui/preferences";
import type { NotificationWays } from "./operations";
import { SettingsSection } from "./section";

interface Props {
  way: "push" | "mail";
  ways: readonly NotificationWays[];
  change: (changed: NotificationWays) => Promise<void>;
}

export function WaysSection({ way, ways, change }: Props) {
  const { t } = useTranslation();
  return (
    <SettingsSection title={t(`push.ways.${way}`)} hint={t("push.waysHint")}>
      {ways.map((each) => (
        <SwitchField
          key={each.category}
          label={t(`push.category.${each.category}`)}
          isOn={each[way]}
          change={(isOn) => change({ ...each, [way]: isOn })}
        />
      ))}
    </SettingsSection>
  );
}

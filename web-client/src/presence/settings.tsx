/** The switches of presence: the viewer's own, and that of the organization for administrators. */
import { useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { SwitchField } from "../ui/fields/switch-field";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import {
  type LoadedPresenceSettings,
  PresenceSettings,
  SetPresenceEnabled,
  SetPresenceShown,
} from "./operations";

/** The viewer's switch. */
export function OwnPresenceSection() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [settings, setSettings] = useSettings();
  const change = async (shown: boolean) =>
    setSettings((await request(direct, SetPresenceShown, { shown })).setPresenceShown);
  return (
    <section aria-labelledby="presence" className="mt-10">
      <h2 id="presence" className="border-b border-line pb-3 text-lg font-semibold">
        {t("presence.title")}
      </h2>
      {settings && (
        <SwitchField
          label={t("presence.show")}
          hint={t(settings.enabled ? "presence.showHint" : "presence.offByOrganization")}
          isOn={settings.shown}
          change={change}
        />
      )}
    </section>
  );
}

/** The organization's switch. */
export function OrganizationPresenceSection() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [settings, setSettings] = useSettings();
  const change = async (enabled: boolean) =>
    setSettings((await request(direct, SetPresenceEnabled, { enabled })).setPresenceEnabled);
  return (
    <section aria-labelledby="presence">
      <h2 id="presence" className="border-b border-line pb-3 text-lg font-semibold">
        {t("presence.title")}
      </h2>
      {settings && (
        <SwitchField
          label={t("presence.enable")}
          hint={t("presence.enableHint")}
          isOn={settings.enabled}
          change={change}
        />
      )}
    </section>
  );
}

function useSettings() {
  const { direct } = useApi();
  const [settings, setSettings] = useState<LoadedPresenceSettings | null>(null);
  useEffect(() => {
    request(direct, PresenceSettings, {}).then(
      ({ presenceSettings }) => setSettings(presenceSettings),
      notifyFailure,
    );
  }, [direct]);
  return [settings, setSettings] as const;
}

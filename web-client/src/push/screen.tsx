/** The page with the settings of offline notifications. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { FeedTabs } from "../home/feed-tabs";
import { useTranslation } from "../ui/preferences";
import { LoadingState } from "../ui/states";
import { notifyFailure } from "../ui/toasts";
import { DesktopSection } from "./desktop/desktop-section";
import { PushDeviceList } from "./devices";
import { DigestSection } from "./digests";
import { NotificationLevelList } from "./levels";
import {
  type LoadedNotificationSettings,
  NotificationSettings,
  type NotificationWays,
  type PushDevice,
  SetNotificationSettings,
} from "./operations";
import { QuietHoursSection } from "./quiet-hours";
import { WaysSection } from "./ways";

interface LoadedSettings {
  pushKey: string | null;
  pushDevices: readonly PushDevice[];
  notificationSettings: LoadedNotificationSettings;
}

export function NotificationSettingsPage() {
  const { direct } = useApi();
  const [loaded, setLoaded] = useState<LoadedSettings | null>(null);
  const load = useCallback(
    () => request(direct, NotificationSettings, {}).then(setLoaded, notifyFailure),
    [direct],
  );
  useEffect(() => void load(), [load]);
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto max-w-2xl px-3 pb-16 sm:px-6">
        <FeedTabs
          title="notificationSettings"
          names={["notifications", "reactions", "notificationSettings"]}
        />
        {loaded ? <NotificationSettingsSections loaded={loaded} reload={load} /> : <LoadingState />}
      </div>
    </div>
  );
}

function NotificationSettingsSections({
  loaded,
  reload,
}: {
  loaded: LoadedSettings;
  reload: () => Promise<void>;
}) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const { pushKey, pushDevices, notificationSettings: settings } = loaded;
  const [ways, setWays] = useState(settings.ways);
  const [digest, setDigest] = useState(settings.digest);
  async function changeWays(changed: NotificationWays) {
    await request(direct, SetNotificationSettings, { input: { ways: [changed] } });
    setWays((all) => all.map((each) => (each.category === changed.category ? changed : each)));
  }
  return (
    <>
      <DesktopSection />
      {pushKey === null ? (
        <p className="mb-10 py-3 text-quiet">{t("push.off")}</p>
      ) : (
        <PushDeviceList pushKey={pushKey} devices={pushDevices} reload={reload} />
      )}
      <WaysSection way="push" ways={ways} change={changeWays} />
      <DigestSection settings={settings} onChange={setDigest} />
      {digest !== "NEVER" && <WaysSection way="mail" ways={ways} change={changeWays} />}
      <QuietHoursSection hours={settings.quietHours} />
      <NotificationLevelList levels={settings.levels} />
    </>
  );
}

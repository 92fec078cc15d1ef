/** The browsers that get pushes. The permission is asked for only after a click here. */
import { useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { errorCode } from "../api/failure";
import { relativeTime } from "../i18n/times";
import { browserName } from "../session/browsers/browser-name";
import { useViewer } from "../session/viewer";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { canSubscribe, currentSubscription, deviceId, registrationOf, subscribe } from "./browser-push";
import { turnDesktopOn } from "./desktop/choice";
import { type PushDevice, RegisterPushDevice, RemovePushDevice, SetNotificationSettings } from "./operations";
import { SettingsSection } from "./section";

interface Props {
  pushKey: string;
  devices: readonly PushDevice[];
  reload: () => Promise<void>;
}

export function PushDeviceList({ pushKey, devices, reload }: Props) {
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const viewer = useViewer();
  const [ownId, setOwnId] = useState<string | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  useEffect(() => {
    currentSubscription()
      .then((subscription) => subscription && deviceId(subscription.endpoint))
      .then(setOwnId, () => {});
  }, []);
  const isOn = devices.some(({ id }) => id === ownId);

  async function turnOn() {
    const subscription = await subscribe(pushKey);
    if (!subscription) return notify(t("push.refused"));
    const input = registrationOf(subscription);
    setOwnId((await request(direct, RegisterPushDevice, { input })).registerPushDevice.id);
    await storeLanguage();
    turnDesktopOn(viewer);
    notify(t("push.turnedOn"));
  }
  /** Pushes are in the language of the interface in which they were turned on last. */
  async function storeLanguage() {
    const input = { language: language === "ja" ? ("JA" as const) : ("EN" as const) };
    await request(direct, SetNotificationSettings, { input });
  }
  async function remove({ id }: PushDevice) {
    if (id === ownId) await (await currentSubscription())?.unsubscribe();
    await request(direct, RemovePushDevice, { id }).catch((error) => {
      // A device that is not found has ended before.
      if (errorCode(error) !== "NOT_FOUND") throw error;
    });
  }
  async function run(action: () => Promise<void>) {
    setIsBusy(true);
    await action().then(reload).catch(notifyFailure);
    setIsBusy(false);
  }

  return (
    <SettingsSection title={t("push.devices")} hint={t("push.devicesHint")}>
      {!isOn && (
        <div className="py-3">
          {canSubscribe() ? (
            <Button kind="main" isBusy={isBusy} onClick={() => run(turnOn)}>
              {t("push.turnOn")}
            </Button>
          ) : (
            <p className="text-quiet">{t("push.unsupported")}</p>
          )}
        </div>
      )}
      <ul aria-label={t("push.devices")}>
        {devices.map((device) => (
          <PushDeviceRow
            key={device.id}
            device={device}
            isOwn={device.id === ownId}
            isBusy={isBusy}
            onRemove={() => run(() => remove(device))}
          />
        ))}
      </ul>
    </SettingsSection>
  );
}

interface PushDeviceRowProps {
  device: PushDevice;
  isOwn: boolean;
  isBusy: boolean;
  onRemove: () => void;
}

function PushDeviceRow({ device, isOwn, isBusy, onRemove }: PushDeviceRowProps) {
  const { t, language } = useTranslation();
  const name = browserName(device.userAgent) ?? t("sessions.unknownBrowser");
  const time = relativeTime(language, new Date(device.registeredAt), new Date());
  return (
    <li data-device={device.id} className="flex items-center gap-4 border-b border-line py-3">
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 font-semibold">
          {name} {isOwn && <Badge tone="good">{t("push.thisDevice")}</Badge>}
        </p>
        <p className="text-sm text-quiet">{t("push.registered", { time })}</p>
      </div>
      <Button
        className="shrink-0"
        isBusy={isBusy}
        aria-label={t("push.removeNamed", { name })}
        onClick={onRemove}
      >
        {t("push.remove")}
      </Button>
    </li>
  );
}

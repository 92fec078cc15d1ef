/** The choice of notifications while the web client is open, but no tab of it is visible. It holds in this browser. */
import { useViewer } from "../../session/viewer";
import { SwitchField } from "../../ui/fields/switch-field";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import { useValue } from "../../ui/value";
import { canSubscribe, pushWorker } from "../browser-push";
import { SettingsSection } from "../section";
import { desktopOwner, ownerKey, turnDesktopOff, turnDesktopOn } from "./choice";

export function DesktopSection() {
  const { t } = useTranslation();
  const viewer = useViewer();
  const isChosen = useValue(desktopOwner) === ownerKey(viewer);

  async function change(isOn: boolean) {
    if (!isOn) return turnDesktopOff();
    if ((await Notification.requestPermission()) !== "granted") return notify(t("push.refused"));
    await pushWorker();
    turnDesktopOn(viewer);
  }

  return (
    <SettingsSection title={t("desktop")} hint={t("desktop.hint")}>
      {canSubscribe() ? (
        <SwitchField
          label={t("desktop.on")}
          isOn={isChosen && Notification.permission === "granted"}
          change={change}
        />
      ) : (
        <p className="py-3 text-quiet">{t("push.unsupported")}</p>
      )}
    </SettingsSection>
  );
}

/** The viewer's own data: passkeys, the export, signed-in browsers, mutes, and the deletion of the account. */
import { MuteList } from "../mutes/mute-list";
import { OwnPresenceSection } from "../presence/settings";
import { useTranslation } from "../ui/preferences";
import { EraseSection } from "./erase-section";
import { ExportSection } from "./export-section";
import { PasskeyList } from "./passkey-list";
import { SessionList } from "./session-list";

export function MyDataScreen() {
  const { t } = useTranslation();
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto max-w-3xl px-3 pb-16 pt-6 sm:px-6">
        <h1 className="mb-6 text-xl font-semibold">{t("myData")}</h1>
        <PasskeyList />
        <ExportSection />
        <SessionList />
        <OwnPresenceSection />
        <MuteList />
        <EraseSection />
      </div>
    </div>
  );
}

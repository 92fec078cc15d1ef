/** How often unread notifications are mailed, to which address, and why no mails are sent. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { SelectField } from "../ui/fields/select-field";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import { type DigestPeriod, type LoadedNotificationSettings, SetNotificationSettings } from "./operations";
import { SettingsSection } from "./section";

const PERIODS: readonly DigestPeriod[] = ["NEVER", "HOURLY", "DAILY", "WEEKLY"];

interface Props {
  settings: LoadedNotificationSettings;
  onChange: (period: DigestPeriod) => void;
}

export function DigestSection({ settings, onChange }: Props) {
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const [stored, setStored] = useState(settings);
  const { digest, digestObstacle } = stored;
  const address = { address: stored.digestAddress ?? "" };

  /** Mails are in the language of the interface in which they were turned on last. */
  async function choose(period: DigestPeriod) {
    setStored({ ...stored, digest: period });
    const input = { digest: period, language: language === "ja" ? ("JA" as const) : ("EN" as const) };
    try {
      const { setNotificationSettings: changed } = await request(direct, SetNotificationSettings, { input });
      setStored({ ...stored, ...changed });
      onChange(period);
    } catch (error) {
      setStored(stored);
      notifyFailure(error);
    }
  }
  return (
    <SettingsSection title={t("push.digest")} hint={t("push.digestHint")}>
      <SelectField
        className="py-3"
        label={t("push.digest.period")}
        value={digest}
        values={PERIODS}
        textOf={(each) => t(`push.digest.${each}`)}
        onChange={choose}
      />
      <p role="status" className="text-sm">
        {digestObstacle
          ? t(`push.obstacle.${digestObstacle}`, address)
          : digest !== "NEVER" && t("push.digest.address", address)}
      </p>
    </SettingsSection>
  );
}

/** The quiet hours, in the browser's time zone unless the person has chosen another one. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { ZoneSelect } from "../publishing/zone";
import { browserZone } from "../publishing/zones";
import { LabelledField } from "../ui/fields/labelled-field";
import { SwitchField } from "../ui/fields/switch-field";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import { type QuietHours, SetNotificationSettings } from "./operations";
import { SettingsSection } from "./section";

export function QuietHoursSection({ hours }: { hours: QuietHours | null }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [stored, setStored] = useState(hours);
  async function store(quietHours: QuietHours | null) {
    await request(direct, SetNotificationSettings, { input: { quietHours } });
    setStored(quietHours);
  }
  async function change(values: Partial<QuietHours>) {
    const changed = stored && { ...stored, ...values };
    // While a time is being typed, its field may be empty.
    if (changed?.start && changed.end && changed.start !== changed.end) {
      await store(changed).catch(notifyFailure);
    }
  }
  const defaults = { start: "22:00", end: "07:00", timeZone: browserZone() };
  return (
    <SettingsSection title={t("push.quiet")} hint={t("push.quietHint")}>
      <SwitchField
        label={t("push.quietOn")}
        isOn={stored !== null}
        change={(isOn) => store(isOn ? defaults : null)}
      />
      {stored && (
        <div className="flex flex-wrap items-end gap-3">
          {(["start", "end"] as const).map((name) => (
            <LabelledField key={name} label={t(`push.quiet.${name}`)}>
              {(fieldProps) => (
                <input
                  {...fieldProps}
                  type="time"
                  className="field"
                  defaultValue={stored[name]}
                  onBlur={(event) => change({ [name]: event.target.value })}
                />
              )}
            </LabelledField>
          ))}
          <ZoneSelect value={stored.timeZone} onChange={(timeZone) => change({ timeZone })} />
        </div>
      )}
    </SettingsSection>
  );
}

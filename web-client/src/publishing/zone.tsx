/** The calendar's time zone, as the user chose it in this browser. The default is the browser's time zone. */
import { useMemo } from "react";
import { useTranslation } from "../ui/preferences";
import { createValue, useValue } from "../ui/value";
import { allZones, browserZone } from "./zones";

const STORAGE_KEY = "noroshi.timeZone";
const chosenZone = createValue<string>(storedZone());

function storedZone(): string {
  const zone = localStorage.getItem(STORAGE_KEY);
  return zone !== null && allZones().includes(zone) ? zone : browserZone();
}

export function useZone(): string {
  return useValue(chosenZone);
}

export function chooseZone(zone: string): void {
  localStorage.setItem(STORAGE_KEY, zone);
  chosenZone.set(zone);
}

interface Props {
  value: string;
  onChange: (zone: string) => void;
  className?: string;
}

export function ZoneSelect({ value, onChange, className = "" }: Props) {
  const { t } = useTranslation();
  const zones = useMemo(() => [...new Set([value, ...allZones()])], [value]);
  return (
    <select
      aria-label={t("publishing.zone")}
      className={`field ${className}`}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      {zones.map((zone) => (
        <option key={zone}>{zone}</option>
      ))}
    </select>
  );
}

/** The choice of who sees a community, and how people join it. */
import { useId } from "react";
import { useTranslation } from "../ui/preferences";
import type { Visibility } from "./operations";

const VISIBILITIES: readonly Visibility[] = ["PUBLIC", "LISTED", "PRIVATE"];

interface Props {
  value: Visibility;
  onChange: (value: Visibility) => void;
}

export function VisibilityField({ value, onChange }: Props) {
  const { t } = useTranslation();
  const name = useId();
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 text-sm font-medium">{t("visibility")}</legend>
      {VISIBILITIES.map((each) => (
        <label
          key={each}
          className="flex cursor-pointer items-start gap-3 rounded-xl px-2 py-1.5 hover:bg-hover"
        >
          <input
            type="radio"
            name={name}
            className="mt-1 size-4 shrink-0 accent-accent"
            checked={value === each}
            onChange={() => onChange(each)}
          />
          <span>
            <span className="block font-medium">{t(`visibility.${each}`)}</span>
            <span className="block text-sm text-quiet">{t(`visibility.${each}.hint`)}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

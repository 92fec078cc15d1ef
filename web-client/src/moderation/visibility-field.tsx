/** The choice of who sees a community, and how people join it. */
import { useId } from "react";
import { RadioChoice } from "../ui/fields/radio-choice";
import { useTranslation } from "../ui/preferences";
import type { CommunityVisibility } from "./operations";

const VISIBILITIES: readonly CommunityVisibility[] = ["PUBLIC", "LISTED", "PRIVATE"];

interface Props {
  value: CommunityVisibility;
  onChange: (value: CommunityVisibility) => void;
}

export function VisibilityField({ value, onChange }: Props) {
  const { t } = useTranslation();
  const name = useId();
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 text-sm font-medium">{t("visibility")}</legend>
      {VISIBILITIES.map((each) => (
        <RadioChoice
          key={each}
          group={name}
          title={t(`visibility.${each}`)}
          hint={t(`visibility.${each}.hint`)}
          isChosen={value === each}
          onChoose={() => onChange(each)}
        />
      ))}
    </fieldset>
  );
}

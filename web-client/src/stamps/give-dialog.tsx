/** The dialog in which a moderator gives a person a pack of stamps. */
import { useState } from "react";
import { useQuery } from "urql";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { SelectField } from "../ui/fields/select-field";
import { useTranslation } from "../ui/preferences";
import { type StampPack, StampPacks } from "./operations";

interface Props {
  /** Name of the person. */
  name: string;
  /** Called with the chosen pack, or with null when the dialog is cancelled. */
  onDone: (pack: StampPack | null) => void;
}

export function GivePackDialog({ name, onDone }: Props) {
  const { t } = useTranslation();
  const [{ data }] = useQuery({ query: StampPacks, requestPolicy: "cache-and-network" });
  const packs = data?.stampPacks.filter(({ availability }) => availability === "GIVEN") ?? [];
  const [chosenId, setChosenId] = useState<string | null>(null);
  const chosen = packs.find(({ id }) => id === chosenId) ?? packs[0] ?? null;
  return (
    <FormDialog
      title={t("person.givePackNamed", { name })}
      text={t(data && chosen === null ? "person.noPacks" : "person.givePackText")}
      action={t("person.doGivePack")}
      canSubmit={chosen !== null}
      submit={() => onDone(chosen)}
      onClose={() => onDone(null)}
    >
      {chosen && (
        <SelectField
          label={t("auditDetail.pack")}
          value={chosen.id}
          values={packs.map(({ id }) => id)}
          textOf={(packId) => packs.find(({ id }) => id === packId)?.name ?? ""}
          onChange={setChosenId}
        />
      )}
    </FormDialog>
  );
}

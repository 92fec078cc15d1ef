/** A field that chooses several people by name or handle. */
import { useCallback } from "react";
import { request, useApi } from "../../api/api";
import { useViewer } from "../../session/viewer";
import { IconButton } from "../../ui/button";
import { PersonField } from "../../ui/fields/person-field";
import type { Person } from "../../ui/fields/person-option";
import { useTranslation } from "../../ui/preferences";
import { FindPeople } from "./operations";

interface Props {
  label: string;
  people: readonly Person[];
  onChange: (people: readonly Person[]) => void;
  /** Ids of people who are not suggested. */
  excludedIds: readonly string[];
  /** How many people can be chosen. */
  maxCount: number;
}

export function PeopleField({ label, people, onChange, excludedIds, maxCount }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const viewer = useViewer();
  const hiddenIds = [viewer.id, ...excludedIds, ...people.map(({ id }) => id)].join(" ");
  const find = useCallback(
    async (query: string) => {
      const { users } = await request(direct, FindPeople, { query });
      return users.filter(({ id }) => !hiddenIds.split(" ").includes(id));
    },
    [direct, hiddenIds],
  );
  return (
    <div className="flex flex-col gap-2">
      {people.length > 0 && (
        <ul className="flex flex-wrap gap-2" aria-label={label}>
          {people.map((person) => (
            <li key={person.id} className="flex items-center gap-1 rounded-full bg-glow pl-3">
              <span className="max-w-48 truncate">{person.name}</span>
              <IconButton
                icon="close"
                size="size-8"
                label={t("person.clear", { name: person.name })}
                onClick={() => onChange(people.filter(({ id }) => id !== person.id))}
              />
            </li>
          ))}
        </ul>
      )}
      {people.length < maxCount && (
        <PersonField
          label={label}
          value={null}
          find={find}
          onChange={(person) => person && onChange([...people, person])}
        />
      )}
    </div>
  );
}

/** One person in a list of suggestions. The field above the list has the focus and handles the keys. */
import { Avatar } from "../avatar";

export interface Person {
  id: string;
  name: string;
  handle: string;
}

interface Props {
  /** The id of the element, which the field names as its active descendant. */
  id: string;
  person: Person;
  isChosen: boolean;
  onChoose: () => void;
}

export function PersonOption({ id, person, isChosen, onChoose }: Props) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the text field has the focus and handles the keys.
    <div
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={isChosen}
      onMouseDown={(event) => event.preventDefault()}
      onClick={onChoose}
      className="flex cursor-pointer items-center gap-2 rounded-lg px-2 py-1.5 aria-selected:bg-hover"
    >
      <Avatar user={person} size="small" />
      <span className="min-w-0">
        <span className="block truncate font-medium">{person.name}</span>
        <span className="block truncate text-sm text-quiet">@{person.handle}</span>
      </span>
    </div>
  );
}

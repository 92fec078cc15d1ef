/** A field that finds one person by name or handle. The chosen person replaces the field. */
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import { Avatar } from "../avatar";
import { IconButton } from "../button";
import { useTranslation } from "../preferences";
import { LabelledField } from "./labelled-field";
import { type Person, PersonOption } from "./person-option";
import { typedKey } from "./typed-key";

const TYPING_DELAY_MS = 150;

interface Props {
  label: string;
  value: Person | null;
  onChange: (person: Person | null) => void;
  /** Returns the people to suggest for the text. */
  find: (text: string) => Promise<readonly Person[]>;
}

export function PersonField(props: Props) {
  return props.value ? <ChosenPerson {...props} person={props.value} /> : <PersonSearch {...props} />;
}

function ChosenPerson({ label, person, onChange }: Props & { person: Person }) {
  const { t } = useTranslation();
  const id = useId();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset can't be laid out like the other fields.
    <div role="group" aria-labelledby={id} className="flex min-w-0 flex-col gap-1">
      <span id={id} className="text-sm font-medium">
        {label}
      </span>
      <span className="flex min-h-[2.625rem] min-w-0 items-center gap-2 rounded-[0.625rem] border border-accent bg-glow pl-2">
        <Avatar user={person} size="small" />
        <span className="min-w-0 grow truncate">{person.name}</span>
        <IconButton
          icon="close"
          size="size-8"
          label={t("person.clear", { name: person.name })}
          onClick={() => onChange(null)}
        />
      </span>
    </div>
  );
}

function PersonSearch({ label, onChange, find }: Props) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const [people, setPeople] = useState<readonly Person[]>([]);
  const [chosenIndex, setChosenIndex] = useState(0);
  const [isOpen, setIsOpen] = useState(false);
  const id = useId();
  const isShown = isOpen && people.length > 0;

  useEffect(() => {
    setChosenIndex(0);
    if (text.trim() === "") return setPeople([]);
    let isCurrent = true;
    const timer = setTimeout(() => {
      find(text.trim()).then(
        (found) => isCurrent && setPeople(found),
        () => {}, // A failed request only means that nobody is suggested.
      );
    }, TYPING_DELAY_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text, find]);

  function choose(person: Person) {
    setText("");
    onChange(person);
  }

  function handleKey(event: KeyboardEvent) {
    const person = people[chosenIndex];
    const key = typedKey(event);
    if (!key || !isShown || !person) return;
    if (key === "Enter") choose(person);
    else if (key === "ArrowDown") setChosenIndex((chosenIndex + 1) % people.length);
    else if (key === "ArrowUp") setChosenIndex((chosenIndex + people.length - 1) % people.length);
    else if (key === "Escape") setIsOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <LabelledField label={label} className="relative">
      {(props) => (
        <>
          <input
            {...props}
            className="field"
            role="combobox"
            autoComplete="off"
            placeholder={t("person.placeholder")}
            aria-autocomplete="list"
            aria-expanded={isShown}
            aria-controls={isShown ? `${id}-list` : undefined}
            aria-activedescendant={isShown ? `${id}-${chosenIndex}` : undefined}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setIsOpen(true);
            }}
            onKeyDown={handleKey}
            onBlur={() => setIsOpen(false)}
          />
          {isShown && (
            <div
              id={`${id}-list`}
              role="listbox"
              aria-label={label}
              className="absolute inset-x-0 top-full z-10 mt-1 min-w-48 rounded-xl border border-line bg-raised p-1 shadow-raised"
            >
              {people.map((person, index) => (
                <PersonOption
                  key={person.id}
                  id={`${id}-${index}`}
                  person={person}
                  isChosen={index === chosenIndex}
                  onChoose={() => choose(person)}
                />
              ))}
            </div>
          )}
        </>
      )}
    </LabelledField>
  );
}

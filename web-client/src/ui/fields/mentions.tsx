/** A text field that suggests people while an @handle is being typed. Ctrl B and Ctrl I format the selected text. */
import {
  type ComponentProps,
  type KeyboardEvent,
  type Ref,
  useEffect,
  useId,
  useImperativeHandle,
  useRef,
  useState,
} from "react";
import { request, useApi } from "../../api/api";
import { useTranslation } from "../preferences";
import { isInFence } from "../text/formatting";
import { mentionAt } from "../text/text";
import { applyFormattingKey } from "./formatting-keys";
import { People, type Person } from "./operations";
import { PersonOption } from "./person-option";
import { typedKey } from "./typed-key";

const TYPING_DELAY_MS = 120;

interface Props extends Omit<ComponentProps<"textarea">, "value" | "onChange" | "ref"> {
  value: string;
  onText: (text: string) => void;
  communityId?: string | undefined;
  /**
   * Called for Enter without Shift, unless Enter chooses a suggestion whose handle is not typed completely. In an open
   * code block only Ctrl Enter calls it.
   */
  onEnter?: () => void;
  ref?: Ref<HTMLTextAreaElement>;
}

export function MentionField({ value, onText, communityId, onEnter, onKeyDown, ref, ...rest }: Props) {
  const { direct } = useApi();
  const { t } = useTranslation();
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  useImperativeHandle(ref, () => field.current as HTMLTextAreaElement);
  const [caret, setCaret] = useState(0);
  const [people, setPeople] = useState<readonly Person[]>([]);
  const [chosenIndex, setChosenIndex] = useState(0);
  const query = mentionAt(value, caret)?.query ?? null;

  useEffect(() => {
    setPeople([]);
    setChosenIndex(0);
    if (query === null) return;
    let isCurrent = true;
    const timer = setTimeout(() => {
      request(direct, People, { query, communityId: communityId ?? null }).then(
        ({ users }) => isCurrent && setPeople(users),
        () => {}, // A failed request only means that there are no suggestions.
      );
    }, TYPING_DELAY_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [query, communityId, direct]);

  function insertMention(person: Person) {
    const mention = mentionAt(value, caret);
    if (!mention) return;
    const textBeforeCaret = `${value.slice(0, mention.start)}@${person.handle} `;
    onText(textBeforeCaret + value.slice(caret));
    setCaret(textBeforeCaret.length);
    requestAnimationFrame(() => {
      field.current?.focus();
      field.current?.setSelectionRange(textBeforeCaret.length, textBeforeCaret.length);
    });
  }

  function handleKey(event: KeyboardEvent<HTMLTextAreaElement>) {
    const key = typedKey(event);
    if (!key) return;
    const person = people[chosenIndex];
    // Enter sends the text when the suggested handle is already typed completely.
    const isCompletelyTyped = person !== undefined && person.handle.toLowerCase() === query?.toLowerCase();
    const isEnter = key === "Enter" && !event.shiftKey && !addsLine(event);
    if (applyFormattingKey(event)) setCaret(event.currentTarget.selectionStart);
    else if (onEnter && isCompletelyTyped && isEnter) onEnter();
    else if (person && (key === "Enter" || key === "Tab")) insertMention(person);
    else if (person && key === "ArrowDown") setChosenIndex((chosenIndex + 1) % people.length);
    else if (person && key === "ArrowUp") setChosenIndex((chosenIndex + people.length - 1) % people.length);
    else if (person && key === "Escape") setPeople([]);
    else if (onEnter && isEnter) onEnter();
    else {
      onKeyDown?.(event);
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <div className="relative min-w-0 grow">
      {people.length > 0 && (
        <div
          id={id}
          role="listbox"
          aria-label={t("mention.people")}
          className="rise absolute bottom-full left-0 z-10 mb-2 w-72 max-w-full rounded-xl border border-line bg-raised p-1 shadow-raised"
        >
          {people.map((person, index) => (
            <PersonOption
              key={person.id}
              id={`${id}-${index}`}
              person={person}
              isChosen={index === chosenIndex}
              onChoose={() => insertMention(person)}
            />
          ))}
        </div>
      )}
      <textarea
        ref={field}
        value={value}
        aria-autocomplete="list"
        aria-controls={people.length > 0 ? id : undefined}
        aria-activedescendant={people.length > 0 ? `${id}-${chosenIndex}` : undefined}
        onChange={(event) => {
          onText(event.target.value);
          setCaret(event.target.selectionStart);
        }}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
        onKeyDown={handleKey}
        {...rest}
      />
    </div>
  );
}

/** Returns whether Enter adds a line, because the caret is in an open code block. */
function addsLine({ ctrlKey, metaKey, currentTarget }: KeyboardEvent<HTMLTextAreaElement>): boolean {
  return !ctrlKey && !metaKey && isInFence(currentTarget.value.slice(0, currentTarget.selectionStart));
}

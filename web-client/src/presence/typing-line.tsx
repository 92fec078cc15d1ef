/** The line below the messages that says who is typing. */
import { useEffect, useState } from "react";
import { request, subscribe, useApi } from "../api/api";
import { type Translate, useTranslation } from "../ui/preferences";
import { TypingEvents, type TypingPerson, TypingUsers } from "./operations";

/** Of more people, no names are shown. */
const NAMES_MAX = 2;

export function TypingLine({ topicId }: { topicId: string }) {
  const { t } = useTranslation();
  const text = typingText(useTypingPeople(topicId), t);
  const announcement = useFirstText(text);
  return (
    <div className="mx-auto w-[min(100%-1.5rem,62rem)]">
      <p data-testid="typing" aria-hidden="true" className="h-5 truncate px-2 text-sm text-quiet">
        {text}
      </p>
      <p role="status" className="sr-only">
        {announcement}
      </p>
    </div>
  );
}

/** Returns the first text since nobody was typing; empty while nobody types. So later changes are not announced. */
function useFirstText(text: string): string {
  const [first, setFirst] = useState("");
  useEffect(() => setFirst((current) => (text === "" ? "" : current || text)), [text]);
  return first;
}

export function typingText(people: readonly TypingPerson[], t: Translate): string {
  const [first, second] = people;
  if (!first) return "";
  if (people.length > NAMES_MAX) return t("typing.several");
  return second
    ? t("typing.two", { first: first.name, second: second.name })
    : t("typing.one", { name: first.name });
}

/** Returns the people other than the viewer who are typing now. */
function useTypingPeople(topicId: string): readonly TypingPerson[] {
  const { direct } = useApi();
  const [people, setPeople] = useState<readonly TypingPerson[]>([]);
  useEffect(() => {
    let isCurrent = true;
    const change = (update: (people: readonly TypingPerson[]) => readonly TypingPerson[]) =>
      isCurrent && setPeople(update);
    const stop = subscribe(direct, TypingEvents, { topicId }, ({ typingEvents: event }) => {
      if (event.__typename === "TypingStarted")
        change((current) => [...without(current, event.user), event.user]);
      else if (event.__typename === "TypingEnded") change((current) => without(current, event.user));
      else
        request(direct, TypingUsers, { topicId }).then(
          ({ typingUsers }) => change(() => typingUsers),
          () => {}, // Later events show who is typing.
        );
    });
    return () => {
      isCurrent = false;
      setPeople([]);
      stop();
    };
  }, [direct, topicId]);
  return people;
}

function without(people: readonly TypingPerson[], { id }: { id: string }): readonly TypingPerson[] {
  return people.filter((each) => each.id !== id);
}

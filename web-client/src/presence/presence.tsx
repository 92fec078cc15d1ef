/** Who is online among the people whose avatars are shown inside a community or conversation. */
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { useApi } from "../api/api";
import { createValue, useValue } from "../ui/value";
import { type WatchedPeople, watchPeople } from "./watched-people";

const PresenceContext = createContext<WatchedPeople | null>(null);
const NOBODY = createValue<ReadonlySet<string>>(new Set());

interface Props {
  /** A community or conversation that the viewer has joined; null for all of them. */
  communityId: string | null;
  children: ReactNode;
}

/** Shows presence on the avatars inside. Nobody is shown as online if the viewer has not joined. */
export function PresenceProvider({ communityId, children }: Props) {
  const api = useApi();
  const [people, setPeople] = useState<WatchedPeople | null>(null);
  useEffect(() => {
    const watched = watchPeople(api, communityId);
    setPeople(watched);
    return watched.stop;
  }, [api, communityId]);
  return <PresenceContext value={people}>{children}</PresenceContext>;
}

/** Returns whether a person is online; false outside of a PresenceProvider. */
export function useIsOnline(userId: string | null): boolean {
  const people = useContext(PresenceContext);
  useEffect(() => (userId === null ? undefined : people?.watch(userId)), [people, userId]);
  const online = useValue(people?.online ?? NOBODY);
  return userId !== null && online.has(userId);
}

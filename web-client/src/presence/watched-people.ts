/** The people whose avatars are shown, and which of them are online. The server is asked for these people only. */
import { type Api, subscribe } from "../api/api";
import { createValue, type ObservableValue } from "../ui/value";
import { PresenceEvents } from "./operations";

/** The server accepts at most this many ids in one subscription. */
export const MAX_WATCHED = 100;
/** Avatars appear and disappear while a person scrolls. The subscription changes only after this time. */
const SETTLE_MS = 500;

export interface WatchedPeople {
  online: ObservableValue<ReadonlySet<string>>;
  /** Watches a person until the returned function is called. */
  watch(userId: string): () => void;
  stop(): void;
}

export function watchPeople(api: Api, communityId: string | null): WatchedPeople {
  const online = createValue<ReadonlySet<string>>(new Set());
  const counts = new Map<string, number>();
  let subscribedIds = "";
  let unsubscribe = () => {};
  let timer: ReturnType<typeof setTimeout> | undefined;

  function update(): void {
    timer = undefined;
    const userIds = idsToWatch(counts);
    if (userIds.join("\n") === subscribedIds) return;
    subscribedIds = userIds.join("\n");
    unsubscribe();
    unsubscribe =
      userIds.length === 0
        ? () => {}
        : subscribe(api.direct, PresenceEvents, { communityId, userIds }, ({ presenceEvents: event }) => {
            if (event.__typename === "OnlinePeopleChanged") online.set(new Set(event.onlineUserIds ?? []));
          });
  }
  function change(userId: string, by: number): void {
    const count = (counts.get(userId) ?? 0) + by;
    if (count > 0) counts.set(userId, count);
    else counts.delete(userId);
    timer ??= setTimeout(update, SETTLE_MS);
  }
  return {
    online,
    watch(userId) {
      change(userId, 1);
      return () => change(userId, -1);
    },
    stop() {
      clearTimeout(timer);
      unsubscribe();
    },
  };
}

/** Returns the ids that appeared last, at most MAX_WATCHED, sorted so that equal sets are equal lists. */
export function idsToWatch(counts: ReadonlyMap<string, number>): string[] {
  return [...counts.keys()].slice(-MAX_WATCHED).sort();
}

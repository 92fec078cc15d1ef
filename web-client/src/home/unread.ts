/** How many notifications are unread, kept up to date by their events. */
import { useEffect } from "react";
import { useQuery } from "urql";
import { listen, useApi } from "../api/api";
import { createValue, useValue } from "../ui/value";
import { type Notification, NotificationEvents, UnreadNotifications } from "./operations";

/** The newest one that came by as an event. */
export const newest = createValue<Notification | null>(null);
/** Set to what the server said when the mark was moved, null to ask anew. */
export const unreadNow = createValue<number | null>(null);

export function useUnreadNotifications(): number {
  const { direct } = useApi();
  const [{ data }, again] = useQuery({ query: UnreadNotifications, requestPolicy: "cache-and-network" });
  const told = useValue(unreadNow);
  useEffect(() => {
    newest.set(null);
    unreadNow.set(null);
    return listen(direct, NotificationEvents, {}, ({ notificationEvents: event }) => {
      if (event.__typename === "NotificationArrived") newest.set(event.notification);
      unreadNow.set(null);
      again({ requestPolicy: "network-only" });
    });
  }, [direct, again]);
  return told ?? data?.unreadNotificationCount ?? 0;
}

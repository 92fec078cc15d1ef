/** The number of unread notifications, updated by events. */
import { useEffect } from "react";
import { useQuery } from "urql";
import { listen, useApi } from "../api/api";
import { createValue, useValue } from "../ui/value";
import { type Notification, NotificationEvents, UnreadNotifications } from "./operations";

/** The newest notification that arrived as an event. */
export const newest = createValue<Notification | null>(null);
/** The server's count after the mark was moved; null to query again. */
export const unreadNow = createValue<number | null>(null);

export function useUnreadNotifications(): number {
  const { direct } = useApi();
  const [{ data }, again] = useQuery({ query: UnreadNotifications, requestPolicy: "cache-and-network" });
  const serverCount = useValue(unreadNow);
  useEffect(() => {
    newest.set(null);
    unreadNow.set(null);
    return listen(direct, NotificationEvents, {}, ({ notificationEvents: event }) => {
      if (event.__typename === "NotificationArrived") newest.set(event.notification);
      unreadNow.set(null);
      again({ requestPolicy: "network-only" });
    });
  }, [direct, again]);
  return serverCount ?? data?.unreadNotificationCount ?? 0;
}

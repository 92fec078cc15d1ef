/** The number of unread notifications, updated by events. */
import { useEffect } from "react";
import { useQuery } from "urql";
import { subscribe, useApi } from "../api/api";
import { currentRoute } from "../app/router";
import { createValue, useValue } from "../ui/value";
import { type Notification, NotificationEvents, UnreadNotifications } from "./operations";

/** The newest notification that arrived as an event. */
export const newestNotification = createValue<Notification | null>(null);
/** The id of the notification that was last removed. */
export const removedNotification = createValue<string | null>(null);
/** The unread count that the server returned when the read mark was moved; null if the query's count is newer. */
export const unreadCount = createValue<number | null>(null);

/** Returns whether the notification is about direct messages of the conversation that the viewer looks at. */
function isOpen({ kind, conversation }: Notification): boolean {
  const route = currentRoute();
  const isShown = document.visibilityState === "visible" && route.name === "topic";
  return kind === "DIRECT_MESSAGE" && isShown && route.id === conversation?.topic.id;
}

export function useUnreadNotifications(): number {
  const { cached } = useApi();
  const [{ data }, refetch] = useQuery({ query: UnreadNotifications, requestPolicy: "cache-and-network" });
  const serverCount = useValue(unreadCount);
  useEffect(() => {
    newestNotification.set(null);
    removedNotification.set(null);
    unreadCount.set(null);
    // Through the cache, which loads the communities again when the viewer was added to one.
    return subscribe(cached, NotificationEvents, {}, ({ notificationEvents: event }) => {
      if (event.__typename === "NotificationRemoved") {
        // A list that is opened later must not show it again.
        if (newestNotification.get()?.id === event.notificationId) newestNotification.set(null);
        removedNotification.set(event.notificationId);
      }
      if (event.__typename === "NotificationArrived") {
        // The viewer reads these messages now, which removes the notification again.
        if (isOpen(event.notification)) return;
        newestNotification.set(event.notification);
      }
      unreadCount.set(null);
      refetch({ requestPolicy: "network-only" });
    });
  }, [cached, refetch]);
  return serverCount ?? data?.unreadNotificationCount ?? 0;
}

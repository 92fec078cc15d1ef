/** The title of the browser's tab: what the page shows, and how much is unread. */
import { useEffect } from "react";
import { createValue, useValue } from "./value";

/** The name of what the page shows, such as a topic; null if the screen's name says it. */
const subject = createValue<string | null>(null);

/** Puts the name of what the page shows into the title. Displays nothing. */
export function PageTitle({ name }: { name: string }) {
  useEffect(() => {
    subject.set(name);
    return () => subject.set(null);
  }, [name]);
  return null;
}

/** Keeps the title of the browser's tab up to date. */
export function useDocumentTitle(screenName: string, unreadCount: number): void {
  const name = useValue(subject) ?? screenName;
  useEffect(() => {
    document.title = titleOf(name, unreadCount);
  }, [name, unreadCount]);
}

export function titleOf(name: string, unreadCount: number): string {
  const unread = unreadCount > 99 ? "(99+) " : unreadCount > 0 ? `(${unreadCount}) ` : "";
  return `${unread}${name} · Noroshi`;
}

/**
 * Shows desktop notifications for what arrives while no tab of the viewer is visible. One tab shows them: the one that
 * holds a Web Lock. Loaded when somebody has chosen it.
 */
import { type Api, request } from "../../api/api";
import { changedConversation } from "../../chat/conversations/unread";
import { newestNotification } from "../../home/unread";
import { translate } from "../../i18n/texts";
import type { ViewerUser } from "../../session/viewer";
import { compareTimestamps } from "../../timeline/window";
import { language, type Translate } from "../../ui/preferences";
import { pushWorker } from "../browser-push";
import { AlertRules, TopicOfMessage } from "../operations";
import { type Alert, conversationAlert, notificationAlert } from "./alerts";
import { ownerKey } from "./choice";
import { type AlertPlace, isWanted } from "./rules";

/** How many keys a notification has: its own, and those of notifications with its tag that it has replaced. */
const KEYS_MAX = 30;
type KeysByTag = Map<string, readonly string[]>;

const isVisible = () => document.visibilityState === "visible";
const t: Translate = (key, values) => translate(language.get(), key, values);

/** Starts to show notifications, until the signal. */
export function startNotifier(api: Api, viewer: ViewerUser, signal: AbortSignal): void {
  const visibleLock = `noroshi visible ${ownerKey(viewer)}`;
  holdWhileVisible(visibleLock, signal);
  closeWhereOpen(signal);
  navigator.locks
    .request(`noroshi notifier ${ownerKey(viewer)}`, { signal }, () =>
      showAlerts(api, viewer, visibleLock, signal),
    )
    .catch(() => {}); // The signal ends the request.
}

/** Holds a shared lock while the tab is visible, so that other tabs know it. */
function holdWhileVisible(name: string, signal: AbortSignal): void {
  let release: (() => void) | null = null;
  function update(): void {
    if (isVisible() && !signal.aborted) {
      if (release) return;
      const isOver = new Promise<void>((resolve) => {
        release = resolve;
      });
      void navigator.locks.request(name, { mode: "shared" }, () => isOver);
    } else {
      release?.();
      release = null;
    }
  }
  update();
  document.addEventListener("visibilitychange", update, { signal });
  signal.addEventListener("abort", update);
}

async function isAnyTabVisible(name: string): Promise<boolean> {
  const { held } = await navigator.locks.query();
  return isVisible() || Boolean(held?.some((lock) => lock.name === name));
}

/** Shows an alert for each event, one after the other. Ends with the signal. */
async function showAlerts(
  api: Api,
  viewer: ViewerUser,
  visibleLock: string,
  signal: AbortSignal,
): Promise<void> {
  const shownKeys: KeysByTag = new Map();
  let queue = Promise.resolve();
  function enqueue(alert: Alert | null): void {
    if (!alert || isVisible()) return;
    queue = queue
      .then(async () => {
        if (!(await isAnyTabVisible(visibleLock)) && (await isWantedNow(api, alert)))
          await show(alert, shownKeys);
      })
      .catch(() => {}); // The alert is lost. The push and the list of notifications remain.
  }
  const stops = [
    newestNotification.watch(() => {
      const notification = newestNotification.get();
      if (notification) enqueue(notificationAlert(notification, t));
    }),
    changedConversation.watch(() => {
      const change = changedConversation.get();
      if (change) enqueue(conversationAlert(change.conversation, change.at, viewer.id, t));
    }),
  ];
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  for (const stop of stops) stop();
}

/** Asks the server for the viewer's current settings, and whether the viewer has read the message elsewhere. */
async function isWantedNow({ direct }: Api, alert: Alert): Promise<boolean> {
  const { message } = alert;
  const variables = { topicId: message?.topicId ?? "", withTopic: message !== null };
  const { notificationSettings, topic } = await request(direct, AlertRules, variables);
  if (!message || !topic) return !message && isWanted(alert, null, notificationSettings, new Date());
  const isRead = topic.readUpTo !== null && compareTimestamps(message.timestamp, topic.readUpTo) <= 0;
  if (alert.isNewMessage && isRead) return false;
  const place: AlertPlace = { topicId: topic.id, communityId: topic.community.id };
  if (topic.parentMessageId !== null) {
    const { message: parent } = await request(direct, TopicOfMessage, { id: topic.parentMessageId });
    place.topicId = parent?.topicId ?? place.topicId;
  }
  return isWanted(alert, place, notificationSettings, new Date());
}

/**
 * Shows an alert, unless it was shown before. The keys are kept here: Chromium forgets a notification if notifications are
 * listed before its display has it.
 */
async function show({ title, body, place, tag, key }: Alert, shownKeys: KeysByTag): Promise<void> {
  const replaced = shownKeys.get(tag) ?? [];
  if (replaced.includes(key)) return;
  const keys = [...replaced, key].slice(-KEYS_MAX);
  const worker = await pushWorker();
  const options = { body, tag, icon: "/favicon.svg", data: { place, keys }, ...{ renotify: true } };
  await worker.showNotification(title, options);
  shownKeys.set(tag, keys);
}

/** Closes notifications about the place that a visible tab shows. */
function closeWhereOpen(signal: AbortSignal): void {
  async function close(): Promise<void> {
    if (!isVisible()) return;
    const place = location.hash;
    for (const notification of await (await pushWorker()).getNotifications()) {
      const { tag } = notification;
      if (tag && (place === tag || place.startsWith(`${tag}/`))) notification.close();
    }
  }
  const closeQuietly = () => void close().catch(() => {});
  document.addEventListener("visibilitychange", closeQuietly, { signal });
  addEventListener("hashchange", closeQuietly, { signal });
}

/** The service worker: shows pushes, and opens their place in the web client. It runs without any page. */

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => event.waitUntil(showPush(event.data.json())));

/**
 * Shows a push in place of what is shown about the same: a push that was sent twice, and notifications that an open
 * page has shown at once. Silent if everything in the push was shown before.
 */
async function showPush({ title, body, place, tag, id, keys = [] }) {
  // Pushes of older versions have no id and no keys. They replace only what has the same tag.
  const shown = id === undefined ? [] : await self.registration.getNotifications();
  const isCovered = ({ tag }) =>
    keys.some((key) => key === tag || key.startsWith(`${tag}/`) || key.startsWith(`${tag}?`));
  const shownKeys = shown.flatMap(({ data }) => data?.keys ?? []);
  const isKnown = keys.length > 0 && keys.every((key) => shownKeys.includes(key));
  for (const each of shown) if (each.tag !== tag && (each.data?.id === id || isCovered(each))) each.close();
  const options = {
    body,
    tag,
    icon: "/favicon.svg",
    data: { place, id, keys },
    silent: isKnown,
    renotify: !isKnown,
  };
  await self.registration.showNotification(title, options);
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPlace(event.notification.data.place));
});

/** Opens a place in a page that is open already, or else in a new one. */
async function openPlace(place) {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find(({ url }) => new URL(url).pathname === "/");
  if (!page) return await self.clients.openWindow(`/${place}`);
  page.postMessage({ place });
  return await page.focus();
}

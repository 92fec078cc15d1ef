/** This browser's subscription to pushes, and the service worker that shows them. */

const WORKER = "/push-worker.js";

/** How a browser is registered with the API. */
export interface PushRegistration {
  endpoint: string;
  publicKey: string;
  authSecret: string;
}

/** Returns whether the browser can get pushes on this page. It needs https, or localhost. */
export function canSubscribe(): boolean {
  return "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
}

/** Returns the subscription of this browser; null if there is none. */
export async function currentSubscription(): Promise<PushSubscription | null> {
  if (!canSubscribe()) return null;
  const worker = await navigator.serviceWorker.getRegistration(WORKER);
  return (await worker?.pushManager.getSubscription()) ?? null;
}

/** Returns the service worker that shows notifications, which starts if it is not running. */
export async function pushWorker(): Promise<ServiceWorkerRegistration> {
  await navigator.serviceWorker.register(WORKER);
  return await navigator.serviceWorker.ready;
}

/**
 * Asks for the permission, and subscribes. Call it only after a click: browsers refuse the question otherwise. Returns
 * null if the person has refused. Throws: DOMException if the browser's push service fails.
 */
export async function subscribe(key: string): Promise<PushSubscription | null> {
  if ((await Notification.requestPermission()) !== "granted") return null;
  const worker = await pushWorker();
  return await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
}

/** Returns how a subscription is registered. */
export function registrationOf(subscription: PushSubscription): PushRegistration {
  const { endpoint, keys } = subscription.toJSON();
  return { endpoint: endpoint ?? "", publicKey: keys?.p256dh ?? "", authSecret: keys?.auth ?? "" };
}

/** Returns the id that the API gives to a subscription: the SHA-256 of its address in hexadecimal digits. */
export async function deviceId(endpoint: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(endpoint));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

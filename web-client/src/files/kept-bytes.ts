/**
 * The bytes of chosen files, as long as the server does not have them: in this page, and in the browser's cache storage,
 * so that uploads continue after a reload. The cache of a user is deleted when the user signs out.
 */
import type { UnsentFile } from "./composed-file";

const CACHE_PREFIX = "noroshi.files ";
const KEPT_MS = 14 * 86_400_000;
const KEPT_BYTES_MAX = 512 * 2 ** 20;
const KEPT_AT = "x-kept-at";
const SIZE = "x-size";

const filesOfPage = new Map<string, File>();
/** The bytes that are being stored. */
const storing = new Map<string, Promise<void>>();
const addressOf = (key: string) => `/kept-files/${key}`;

/** Returns a file with its bytes, if it was chosen or found since the page was loaded. */
export const bytesOf = (key: string): File | undefined => filesOfPage.get(key);

/** Keeps the bytes of a chosen file. In a browser whose storage is full, a reload loses them. */
export function keepBytes(owner: string, key: string, file: File): void {
  filesOfPage.set(key, file);
  const stored = storeBytes(owner, key, file).catch(() => {});
  storing.set(key, stored);
}

/** Returns a chosen file with its bytes, also after a reload; undefined if the bytes are lost. */
export async function findBytes(
  owner: string,
  { key, name, modifiedAt }: UnsentFile,
): Promise<File | undefined> {
  const known = filesOfPage.get(key);
  if (known) return known;
  const response = await cacheOf(owner)
    .then((cache) => cache.match(addressOf(key)))
    .catch(() => undefined);
  if (!response) return undefined;
  const file = new File([await response.blob()], name, { lastModified: modifiedAt });
  filesOfPage.set(key, file);
  return file;
}

/** Forgets the stored bytes, since the server has them. The page still shows the picture. */
export async function forgetStoredBytes(owner: string, key: string): Promise<void> {
  await storing.get(key);
  storing.delete(key);
  await cacheOf(owner)
    .then((cache) => cache.delete(addressOf(key)))
    .catch(() => {});
}

export function forgetBytes(owner: string, key: string): void {
  filesOfPage.delete(key);
  void forgetStoredBytes(owner, key);
}

/** Forgets all files of a user who signs out. */
export function forgetAllBytes(owner: string): void {
  filesOfPage.clear();
  globalThis.caches?.delete(CACHE_PREFIX + owner).catch(() => {});
}

/** Opens the user's cache. Throws in a browser without one. */
async function cacheOf(owner: string): Promise<Cache> {
  return await caches.open(CACHE_PREFIX + owner);
}

async function storeBytes(owner: string, key: string, file: File): Promise<void> {
  if ((await removeExpired()) + file.size > KEPT_BYTES_MAX) return;
  const headers = { [KEPT_AT]: String(Date.now()), [SIZE]: String(file.size) };
  await (await cacheOf(owner)).put(addressOf(key), new Response(file, { headers }));
}

/** Removes the expired files of all users. Returns how many bytes the others have. */
async function removeExpired(): Promise<number> {
  let total = 0;
  for (const name of await caches.keys()) {
    if (!name.startsWith(CACHE_PREFIX)) continue;
    const cache = await caches.open(name);
    for (const request of await cache.keys()) {
      const { headers } = (await cache.match(request)) ?? new Response();
      if (Date.now() - Number(headers.get(KEPT_AT)) > KEPT_MS) await cache.delete(request);
      else total += Number(headers.get(SIZE));
    }
  }
  return total;
}

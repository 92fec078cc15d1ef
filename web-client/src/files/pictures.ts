/**
 * Pictures of the server that need the viewer's credential. An `img` element can't send a token, so the picture is
 * fetched and shown from the memory of the page.
 */
import { useEffect, useState } from "react";
import { requestHeaders } from "../session/identity";
import { token } from "../session/session";

const MAX_KEPT = 400;

/** The addresses in memory by credential and path. The picture that was used longest ago comes first. */
const kept = new Map<string, Promise<string | null>>();

/** Returns the address of a picture in memory; null without a path, while it loads, and if it can't be loaded. */
export function usePicture(path: string | null | undefined): string | null {
  const [loaded, setLoaded] = useState<{ path: string; url: string | null } | null>(null);
  useEffect(() => {
    if (!path) return;
    let isCurrent = true;
    void pictureUrl(path).then((url) => isCurrent && setLoaded({ path, url }));
    return () => {
      isCurrent = false;
    };
  }, [path]);
  return loaded !== null && loaded.path === path ? loaded.url : null;
}

function pictureUrl(path: string): Promise<string | null> {
  const credential = token.get();
  if (credential === null) return Promise.resolve(null);
  const key = `${credential}\n${path}`;
  const url = kept.get(key) ?? fetchPicture(path, credential);
  kept.delete(key);
  kept.set(key, url);
  void url.then((found) => found === null && kept.delete(key));
  forgetOldest();
  return url;
}

async function fetchPicture(path: string, credential: string): Promise<string | null> {
  try {
    const response = await fetch(path, { headers: requestHeaders(credential) });
    return response.ok ? URL.createObjectURL(await response.blob()) : null;
  } catch {
    return null;
  }
}

/** Frees the memory of pictures beyond the limit. An element that shows one keeps showing it. */
function forgetOldest(): void {
  for (const [key, url] of kept) {
    if (kept.size <= MAX_KEPT) return;
    kept.delete(key);
    void url.then((found) => found && URL.revokeObjectURL(found));
  }
}

/** Effects of the whole web client: renewing this browser's registration, and opening the place of a clicked push. */
import { useEffect } from "react";
import { useApi } from "../api/api";
import { useViewer } from "../session/viewer";

export function usePush(): void {
  const api = useApi();
  const viewer = useViewer();
  useEffect(() => {
    if (globalThis.Notification?.permission !== "granted") return;
    import("./renewal").then(({ renewRegistration }) => renewRegistration(api, viewer)).catch(() => {}); // The next start of the web client renews it.
  }, [api, viewer]);
  useEffect(() => {
    function open({ data }: MessageEvent) {
      if (typeof data?.place === "string" && data.place.startsWith("#/")) location.hash = data.place;
    }
    navigator.serviceWorker?.addEventListener("message", open);
    return () => navigator.serviceWorker?.removeEventListener("message", open);
  }, []);
}

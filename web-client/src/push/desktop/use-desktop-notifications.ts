/** Shows notifications while no tab is visible, if the viewer has chosen that in this browser. */
import { useEffect } from "react";
import { useApi } from "../../api/api";
import { useViewer } from "../../session/viewer";
import { useValue } from "../../ui/value";
import { desktopOwner, ownerKey } from "./choice";

export function useDesktopNotifications(): void {
  const api = useApi();
  const viewer = useViewer();
  const isOn = useValue(desktopOwner) === ownerKey(viewer);
  useEffect(() => {
    if (!isOn) return;
    const end = new AbortController();
    import("./notifier").then(
      ({ startNotifier }) => startNotifier(api, viewer, end.signal),
      () => {}, // The next start of the web client loads the script.
    );
    return () => end.abort();
  }, [api, viewer, isOn]);
}

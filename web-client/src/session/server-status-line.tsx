/** A line with the server's readiness, polled every 5 s while the page is visible. */
import { useEffect, useState } from "react";
import { useTranslation } from "../ui/preferences";
import { fetchServerStatus, type ServerStatus, STATUS_TEXTS } from "./server-status";

const POLL_INTERVAL_MS = 5_000;
const COLOURS: Record<ServerStatus, string> = {
  ready: "bg-good",
  late: "bg-wait",
  unready: "bg-wait",
  unreachable: "bg-bad",
};

export function ServerStatusLine() {
  const { t, language } = useTranslation();
  const [status, setStatus] = useState<ServerStatus | null>(null);
  useEffect(() => {
    const refresh = () => void (document.hidden || fetchServerStatus().then(setStatus));
    refresh();
    const timer = setInterval(refresh, POLL_INTERVAL_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <span className="flex items-center gap-2 text-quiet">
      <span aria-hidden="true" className={`size-2.5 rounded-full ${status ? COLOURS[status] : "bg-line"}`} />
      <span role="status">{status ? STATUS_TEXTS[status][language] : t("state.asking")}</span>
    </span>
  );
}

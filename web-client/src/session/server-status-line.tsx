/** The server's readiness, polled every few seconds while the page is visible. */
import { useEffect, useState } from "react";
import { useTranslation } from "../ui/preferences";
import { fetchServerStatus, type ServerStatus, STATUS_TEXTS } from "./server-status";

const ASK_EVERY_MS = 5_000;
const COLOURS: Record<ServerStatus, string> = {
  ready: "bg-good",
  late: "bg-wait",
  unready: "bg-wait",
  unreachable: "bg-bad",
};

export function ServerState() {
  const { t, language } = useTranslation();
  const [state, setState] = useState<ServerStatus | null>(null);
  useEffect(() => {
    const refresh = () => void (document.hidden || fetchServerStatus().then(setState));
    refresh();
    const timer = setInterval(refresh, ASK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <span className="flex items-center gap-2 text-quiet">
      <span aria-hidden="true" className={`size-2.5 rounded-full ${state ? COLOURS[state] : "bg-line"}`} />
      <span role="status">{state ? STATUS_TEXTS[state][language] : t("state.asking")}</span>
    </span>
  );
}

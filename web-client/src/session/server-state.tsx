/** The server's readiness, polled every few seconds while the page is visible. */
import { useEffect, useState } from "react";
import { useWords } from "../ui/preferences";
import { askState, type State, TEXT } from "./state";

const ASK_EVERY_MS = 5_000;
const COLOURS: Record<State, string> = {
  ready: "bg-good",
  late: "bg-wait",
  unready: "bg-wait",
  unreachable: "bg-bad",
};

export function ServerState() {
  const { t, language } = useWords();
  const [state, setState] = useState<State | null>(null);
  useEffect(() => {
    const look = () => void (document.hidden || askState().then(setState));
    look();
    const timer = setInterval(look, ASK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <span className="flex items-center gap-2 text-quiet">
      <span aria-hidden="true" className={`size-2.5 rounded-full ${state ? COLOURS[state] : "bg-line"}`} />
      <span role="status">{state ? TEXT[state][language] : t("state.asking")}</span>
    </span>
  );
}

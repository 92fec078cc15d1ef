/** The fan-out progress of the viewer's own post, updated live. */
import { useEffect, useState } from "react";
import { request, subscribe, useApi } from "../api/api";
import { useTranslation } from "../ui/preferences";
import { type FanOut, FanOutEvents, PostFanOut } from "./operations";

export function FanOutProgress({ fanOut }: { fanOut: FanOut }) {
  const { t } = useTranslation();
  const { state, total, delivered, failed } = useFanOut(fanOut);
  if (total === 0) return null;
  const finished = delivered + failed;
  const text = t(state === "COMPLETED" ? "fanOut.done" : "fanOut.running", { delivered, total });
  return (
    <div className="mt-2 flex items-center gap-3 text-sm text-quiet" data-fan-out={state}>
      {state !== "COMPLETED" && (
        <progress value={finished} max={total} aria-label={text} className="h-1.5 w-32 accent-accent" />
      )}
      <span className="tabular-nums">{text}</span>
      {failed > 0 && <span className="text-bad">{t("fanOut.failed", { count: failed })}</span>}
    </div>
  );
}

function useFanOut(initial: FanOut): FanOut {
  const { direct } = useApi();
  const [fanOut, setFanOut] = useState(initial);
  const { postId } = initial;
  const isCompleted = fanOut.state === "COMPLETED";
  useEffect(() => {
    if (isCompleted) return;
    return subscribe(direct, FanOutEvents, { postId }, ({ jobEvents: event }) => {
      if (event.__typename === "FanOutChanged") setFanOut(event.fanOut);
      else if (event.__typename === "StreamReady" && !event.resumed)
        request(direct, PostFanOut, { id: postId }).then(
          ({ post }) => setFanOut((now) => (now.state === "COMPLETED" ? now : (post?.fanOut ?? now))),
          () => {}, // The next event carries the same progress.
        );
    });
  }, [direct, postId, isCompleted]);
  return fanOut;
}

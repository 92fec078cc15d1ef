/** A list, newest item first, that loads older items while the user scrolls. */
import { type ReactElement, type ReactNode, useEffect, useRef } from "react";
import { Virtualizer } from "virtua";
import type { Feed } from "../timeline/feed";
import type { TimelineItem } from "../timeline/window";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { useValue } from "../ui/value";

const LOAD_WITHIN_PX = 1200;

interface Props<Item extends TimelineItem> {
  feed: Feed<Item>;
  head?: ReactNode;
  pill?: ReactNode;
  empty: ReactNode;
  children: (item: Item) => ReactElement;
  /** Without page margins, for use beside other content. */
  isNarrow?: boolean;
}

export function FeedList<Item extends TimelineItem>({
  feed,
  head,
  pill,
  empty,
  children,
  isNarrow,
}: Props<Item>) {
  const { t } = useTranslation();
  const state = useValue(feed.state);
  const scroller = useRef<HTMLDivElement>(null);
  const above = useRef<HTMLDivElement>(null);
  const items = [...state.window.items].reverse();

  function loadIfNearEnd() {
    const box = scroller.current;
    if (box && box.scrollHeight - box.scrollTop - box.clientHeight < LOAD_WITHIN_PX) void feed.loadOlder();
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: after a short page, the end may still be visible.
  useEffect(loadIfNearEnd, [state]);

  return (
    <div className="relative h-full">
      {pill}
      <div
        ref={scroller}
        onScroll={loadIfNearEnd}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard.
        tabIndex={0}
        className="thin-scroll h-full overflow-y-auto"
      >
        <div className={isNarrow ? "px-1.5 pb-4" : "mx-auto max-w-2xl px-3 pb-16 sm:px-6"}>
          <div ref={above}>{head}</div>
          {state.phase === "loading" && <LoadingState />}
          {state.phase === "failed" && <ErrorState error={state.error} retry={() => feed.open(null)} />}
          {state.phase === "ready" && items.length === 0 && empty}
          {state.phase === "ready" && (
            <Virtualizer
              as="ol"
              item="li"
              data={items}
              scrollRef={scroller}
              startMargin={above.current?.offsetHeight ?? 0}
              bufferSize={600}
            >
              {(item) => children(item)}
            </Virtualizer>
          )}
          {state.edge === "older" && <p className="py-4 text-center text-sm text-quiet">{t("loading")}</p>}
          {state.edgeError !== null && (
            <p className="py-4 text-center">
              <Button onClick={loadIfNearEnd}>{t("tryAgain")}</Button>
            </p>
          )}
        </div>
      </div>
    </div>
  );
}

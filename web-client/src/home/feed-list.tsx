/** A list, newest item first, that loads older items while the user scrolls. */
import { type ReactElement, type ReactNode, useEffect, useRef } from "react";
import { Virtualizer } from "virtua";
import type { TimelineFeed } from "../timeline/feed";
import type { TimelineItem } from "../timeline/window";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { useValue } from "../ui/value";

const LOAD_WITHIN_PX = 1200;

interface Props<Item extends TimelineItem, Row> {
  feed: TimelineFeed<Item>;
  /** Returns the rows of the items, which are the newest first. A row may stand for several items. */
  rowsOf: (items: readonly Item[]) => readonly Row[];
  /** Shown above the first item, and scrolls with the list. */
  head?: ReactNode;
  /** Floats over the list, such as a button that shows new items. */
  pill?: ReactNode;
  /** Shown instead of the list if it has no items. */
  empty: ReactNode;
  children: (row: Row) => ReactElement;
  /** Without page margins, for use beside other content. */
  isNarrow?: boolean;
}

/** A list with a row for each item. */
export function FeedList<Item extends TimelineItem>(props: Omit<Props<Item, Item>, "rowsOf">) {
  return <GroupedFeedList {...props} rowsOf={(items) => items} />;
}

export function GroupedFeedList<Item extends TimelineItem, Row>({
  feed,
  rowsOf,
  head,
  pill,
  empty,
  children,
  isNarrow,
}: Props<Item, Row>) {
  const { t } = useTranslation();
  const state = useValue(feed.state);
  const scroller = useRef<HTMLDivElement>(null);
  const headBox = useRef<HTMLDivElement>(null);
  const items = [...state.window.items].reverse();
  const rows = rowsOf(items);
  const rowsAtLastLoad = useRef(-1);

  function loadIfNearEnd() {
    const box = scroller.current;
    if (box && box.scrollHeight - box.scrollTop - box.clientHeight < LOAD_WITHIN_PX) void feed.loadOlder();
  }
  // After a short page, the end may still be visible. A page that adds no row is followed by another one only when the
  // user scrolls or asks for it: thousands of reactions to one message are one row.
  // biome-ignore lint/correctness/useExhaustiveDependencies: each page changes the state.
  useEffect(() => {
    if (state.phase !== "ready" || rows.length === rowsAtLastLoad.current) return;
    rowsAtLastLoad.current = rows.length;
    loadIfNearEnd();
  }, [state]);
  const isFolded = rows.length < items.length;

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
          <div ref={headBox}>{head}</div>
          {state.phase === "loading" && <LoadingState />}
          {state.phase === "failed" && <ErrorState error={state.error} retry={() => feed.open(null)} />}
          {state.phase === "ready" && items.length === 0 && empty}
          {state.phase === "ready" && (
            <Virtualizer
              as="ol"
              item="li"
              data={rows}
              scrollRef={scroller}
              startMargin={headBox.current?.offsetHeight ?? 0}
              bufferSize={600}
            >
              {(row) => children(row)}
            </Virtualizer>
          )}
          {state.edge === "older" && <p className="py-4 text-center text-sm text-quiet">{t("loading")}</p>}
          {isFolded && state.window.hasOlder && state.edge === null && state.edgeError === null && (
            <p className="py-4 text-center">
              <Button onClick={() => feed.loadOlder()}>{t("list.more")}</Button>
            </p>
          )}
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

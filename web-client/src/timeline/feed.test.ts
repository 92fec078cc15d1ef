import { expect, test } from "vitest";
import { createFeed, type TimelinePage } from "./feed";
import { withChangedItem } from "./window";

interface TestItem {
  id: string;
  timestamp: string;
  text: string;
}
const item = (n: number, text = ""): TestItem => ({
  id: `m${n}`,
  timestamp: `1.${String(n).padStart(6, "0")}`,
  text,
});

/** Returns a source whose requests wait until the test answers them with a page. */
function controlledSource() {
  const pendingPages: { resolve: (page: TimelinePage<TestItem>) => void; reject: (error: Error) => void }[] =
    [];
  const loadPage = () =>
    new Promise<TimelinePage<TestItem>>((resolve, reject) => pendingPages.push({ resolve, reject }));
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
  return {
    source: { newest: loadPage, around: loadPage, older: loadPage, newer: loadPage },
    answer: async (page: TimelinePage<TestItem>) => {
      pendingPages.shift()?.resolve(page);
      await settle();
    },
    fail: async (error: Error) => {
      pendingPages.shift()?.reject(error);
      await settle();
    },
  };
}
const ids = (feed: ReturnType<typeof createFeed<TestItem>>) =>
  feed.state
    .get()
    .window.items.map(({ id }) => id)
    .join(" ");

test("a message that arrives while the first page loads is in the window", async () => {
  const { source, answer } = controlledSource();
  const feed = createFeed(source);
  void feed.open(null);
  feed.put(item(3));
  await answer({ items: [item(2), item(1)], hasOlder: false, hasNewer: false });
  expect(ids(feed)).toBe("m1 m2 m3");
});

test("a page that is older than an event does not undo it", async () => {
  const { source, answer } = controlledSource();
  const feed = createFeed(source);
  void feed.open(null);
  feed.apply((window) => withChangedItem(window, "m1", () => item(1, "edited")));
  await answer({ items: [item(1, "written")], hasOlder: false, hasNewer: false });
  expect(feed.state.get().window.items[0]?.text).toBe("edited");
});

test("a message that arrives while the newest page loads is not lost", async () => {
  const { source, answer } = controlledSource();
  const feed = createFeed(source);
  void feed.open("1.000001");
  await answer({ items: [item(1)], hasOlder: false, hasNewer: true });
  void feed.loadNewer();
  feed.put(item(3));
  expect(ids(feed)).toBe("m1");
  await answer({ items: [item(2)], hasOlder: false, hasNewer: false });
  expect(ids(feed)).toBe("m1 m2 m3");
});

test("a page of a replaced window is discarded", async () => {
  const { source, answer } = controlledSource();
  const feed = createFeed(source);
  void feed.open("1.000001");
  void feed.open(null);
  await answer({ items: [item(1)], hasOlder: false, hasNewer: true });
  await answer({ items: [item(9)], hasOlder: true, hasNewer: false });
  expect(ids(feed)).toBe("m9");
});

test("a failed page of a replaced window does not fail the new window", async () => {
  const { source, answer, fail } = controlledSource();
  const feed = createFeed(source);
  void feed.open("1.000001");
  await answer({ items: [item(1)], hasOlder: false, hasNewer: true });
  void feed.loadNewer();
  void feed.open(null);
  await fail(new Error("offline"));
  expect(feed.state.get().edgeError).toBeNull();
  await answer({ items: [item(9)], hasOlder: true, hasNewer: false });
  expect(ids(feed)).toBe("m9");
});

test("an end loads one page at a time, and excess items at the other end are dropped", async () => {
  const { source, answer } = controlledSource();
  const feed = createFeed(source, 3);
  void feed.open(null);
  await answer({ items: [item(5), item(6)], hasOlder: true, hasNewer: false });
  void feed.loadOlder();
  void feed.loadOlder();
  await answer({ items: [item(4), item(3)], hasOlder: true, hasNewer: false });
  await answer({ items: [item(2)], hasOlder: true, hasNewer: false });
  expect(ids(feed)).toBe("m3 m4 m5");
  expect(feed.state.get().window.hasNewer).toBe(true);
});

test("a window that is about to be replaced is not extended", async () => {
  const { source, answer } = controlledSource();
  const feed = createFeed(source);
  void feed.open("1.000005");
  await answer({ items: [item(5)], hasOlder: true, hasNewer: true });
  void feed.loadOlder();
  void feed.open(null);
  // The list requests older items whenever something changes.
  void feed.loadOlder();
  feed.put(item(91));
  await answer({ items: [item(4)], hasOlder: true, hasNewer: true });
  await answer({ items: [item(90)], hasOlder: true, hasNewer: false });
  expect(ids(feed)).toBe("m90 m91");
  void feed.loadOlder();
  await answer({ items: [item(89)], hasOlder: true, hasNewer: false });
  expect(ids(feed)).toBe("m89 m90 m91");
});

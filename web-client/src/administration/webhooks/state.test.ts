import { expect, test } from "vitest";
import { type TextKey, translate } from "../../i18n/texts";
import type { Webhook } from "./operations";
import { limitsText, noticeOf, stateOf, toneOf, troubledFirst } from "./state";

const t = (key: TextKey, values?: Record<string, string | number>) => translate("en", key, values);
const NOW = new Date("2026-11-21T12:00:00Z");
const EARLIER = "2026-11-20T12:00:00Z";

const HEALTHY = {
  id: "w1",
  disabledAt: null,
  disabledReason: null,
  failingSince: null,
  nextTryAt: null,
  lastError: null,
  communityIds: [] as readonly string[],
  topicIds: [] as readonly string[],
  jobIds: [] as readonly string[],
};
const webhook = (changes: Partial<Webhook>) => ({ ...HEALTHY, ...changes }) as Webhook;
const FAILING = webhook({ id: "w2", failingSince: EARLIER, nextTryAt: EARLIER, lastError: "HTTP 500 oops" });
const disabled = (disabledReason: Webhook["disabledReason"]) =>
  webhook({
    id: "w3",
    disabledAt: EARLIER,
    disabledReason,
    failingSince: EARLIER,
    lastError: "HTTP 500 oops",
  });
const notice = (each: Webhook) => noticeOf(each, t, "en", NOW).join(" ");

test("a webhook that works has no notice", () => {
  expect(stateOf(webhook({}))).toBe("enabled");
  expect(notice(webhook({}))).toBe("");
});

test("the notice of a failing webhook says since when, the next try and the last error", () => {
  expect(stateOf(FAILING)).toBe("failing");
  expect(notice(FAILING)).toMatch(/since Nov 20, 2026.*Next try: Nov 20, 2026.*Last error: HTTP 500 oops$/s);
});

test("the notice of a disabled webhook gives the reason in plain words", () => {
  expect(stateOf(disabled("FAILING"))).toBe("disabled");
  expect(notice(disabled("FAILING"))).toMatch(/a message has failed for three days.*Last error: HTTP 500/s);
  expect(notice(disabled("GONE"))).toContain("410");
  expect(notice(disabled("KEY_ENDED"))).toContain("service key was revoked or has expired");
  expect(notice(disabled("KEY_ENDED"))).not.toMatch(/If you enable it|Last error/);
  expect(notice(disabled("KEY_ENDED"))).toContain("can’t be enabled");
  expect(notice(disabled("REQUESTED"))).toContain("by an administrator");
  expect(notice(disabled("REQUESTED"))).not.toContain("Last error");
});

test("a webhook that somebody disabled looks like no trouble", () => {
  const tones = (["FAILING", "GONE", "KEY_ENDED", "REQUESTED"] as const).map((each) =>
    toneOf(disabled(each)),
  );
  expect(tones).toEqual(["bad", "bad", "bad", "quiet"]);
});

test("webhooks in trouble come first, those that somebody disabled do not", () => {
  const order = troubledFirst([disabled("REQUESTED"), webhook({}), FAILING]).map(({ id }) => id);
  expect(order).toEqual(["w2", "w3", "w1"]);
});

test("limits are counted by kind", () => {
  expect(limitsText(webhook({}), t)).toBeNull();
  expect(limitsText(webhook({ communityIds: ["c"], jobIds: ["a", "b"] }), t)).toBe(
    "only of: 1 community, 2 jobs",
  );
});

/** Scheduled posts on a calendar: by month, by week, or as a list; posts are written, moved and opened from there. */
import { useMemo, useState } from "react";
import { go, type PublishingPlace } from "../app/router";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { useWords } from "../ui/preferences";
import { Empty, Failed, Loading } from "../ui/states";
import { AccountsDialog } from "./accounts";
import { Agenda } from "./agenda";
import { type ChipActions, Hanging } from "./chip";
import { emptyDraft } from "./composer";
import { daysOf, firstWeekday, type View } from "./days";
import { Dialogs, type Open } from "./dialogs";
import { useDrag } from "./drag";
import { Head } from "./head";
import type { Live } from "./live";
import { Month } from "./month";
import { useNow } from "./now";
import type { Scheduled } from "./operations";
import { type Calendar, notifyRefusal, useCalendar, useMove, useSlots } from "./posts";
import { readingsOf, refusalOf } from "./readings";
import { Week } from "./week";
import { type When, whenOf } from "./when";
import { useZone } from "./zone";
import { localOf, putOn, written } from "./zones";

const HOUR_MS = 3_600_000;
const LEAD_MS = HOUR_MS / 6;
const WIDE = "(min-width: 48rem)";

export function PublishingPage({ place }: { place: PublishingPlace }) {
  const operator = useViewer().roles.includes("OPERATOR");
  const zone = useZone();
  const now = useNow(zone);
  const today = now.slice(0, 10);
  const view: View = place.view ?? (matchMedia(WIDE).matches ? "month" : "list");
  const day = place.day ?? today;
  const days = useMemo(() => daysOf(view, day, firstWeekday()), [view, day]);
  const calendar = useCalendar(days, zone);
  const posts = calendar.data?.posts ?? [];
  const byDay = useSlots(posts, zone, "day");
  const byHour = useSlots(posts, zone, "hour");
  const [connecting, setConnecting] = useState(false);
  const { open, instead, actions, move } = usePostActions(place, view, calendar, now);

  const freeTime = (slot: string) => freeTimeOn(slot, now, zone);
  const write = (slot: string) =>
    instead({ kind: "write", post: null, draft: emptyDraft(freeTime(slot < today ? today : slot)) });
  const openDay = (chosen: string) => instead({ kind: "day", day: chosen });
  const grid = { days, day, today, slots: view === "week" ? byHour : byDay, actions, openDay, write };
  const nothing = calendar.fresh && !days.some((each) => byDay.has(each));
  return (
    <section aria-labelledby="publishing" className="flex h-full min-h-0 flex-col">
      <Head
        view={view}
        day={day}
        days={days}
        write={() => write(day)}
        accounts={operator ? () => setConnecting(true) : null}
      />
      <Notes calendar={calendar} nothing={nothing && view !== "list"} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled by keys. */}
      <div data-scroller tabIndex={0} className="thin-scroll min-h-0 grow overflow-auto">
        {!calendar.data && calendar.error !== null && (
          <Failed error={calendar.error} again={calendar.again} />
        )}
        {!calendar.data && calendar.error === null && <Loading />}
        {calendar.data && view === "month" && <Month {...grid} />}
        {calendar.data && view === "week" && <Week {...grid} now={now} />}
        {calendar.data && view === "list" && !nothing && <Agenda {...grid} />}
        {calendar.data && view === "list" && nothing && <Nothing write={() => write(day)} />}
      </div>
      <Hanging drag={actions.drag} zone={zone} />
      <Dialogs
        place={place}
        open={open}
        instead={instead}
        today={today}
        slots={byDay}
        actions={actions}
        freeTime={freeTime}
        move={move}
        connect={() => setConnecting(true)}
        changed={calendar.again}
      />
      {connecting && <AccountsDialog onClose={() => setConnecting(false)} />}
    </section>
  );
}

/** The actions on the calendar's posts, and the open dialog. */
function usePostActions(place: PublishingPlace, view: View, calendar: Live<Calendar>, now: string) {
  const { t } = useWords();
  const viewer = useViewer();
  const zone = useZone();
  const [open, setOpen] = useState<Open | null>(null);
  const move = useMove(calendar);
  const drag = useDrag(drop);

  const show = (post: string | null) => go({ name: "publishing", view, day: place.day, post });
  function instead(next: Open | null) {
    setOpen(next);
    if (place.post !== null) show(null);
  }
  const actions: ChipActions = {
    zone,
    drag,
    open: ({ id }) => {
      setOpen(null);
      show(id);
    },
    move: (post) =>
      instead({ kind: "move", post, begun: whenOf(new Date(post.dueAt), zone), readings: null }),
    mayMove: (post) => post.state === "SCHEDULED" && post.author.id === viewer.id,
  };

  async function drop(post: Scheduled, slot: string) {
    const before = localOf(zone, new Date(post.dueAt));
    const local = putOn(slot, before);
    const begun = { local, zone, reading: null };
    if (local === before.slice(0, 16)) return;
    // A post dropped in the past would be published at once, which a drag never intends.
    if (local <= now) return instead({ kind: "move", post, begun, readings: null });
    try {
      await move(post, written(zone, local), zone);
    } catch (error) {
      const refusal = refusalOf(error);
      const readings = readingsOf(refusal);
      if (readings) instead({ kind: "move", post, begun, readings });
      else notifyRefusal(error, refusal, t);
    }
  }
  return { open, instead, actions, move };
}

/** Nine o'clock of a day, or the start of an hour; when that has passed, the next full hour. */
function freeTimeOn(slot: string, now: string, zone: string): When {
  const local = slot.length === 10 ? `${slot}T09:00` : `${slot}:00`;
  if (local > now) return { local, zone, reading: null };
  return whenOf(new Date(Math.ceil((Date.now() + LEAD_MS) / HOUR_MS) * HOUR_MS), zone);
}

function Notes({ calendar, nothing }: { calendar: Live<Calendar>; nothing: boolean }) {
  const { t } = useWords();
  if (!calendar.data) return null;
  return (
    <div role="status">
      {calendar.data.cut && (
        <p className="bg-wait-ground px-4 py-1.5 text-sm text-wait">{t("publishing.cut")}</p>
      )}
      {calendar.error !== null && (
        <p className="bg-bad-ground px-4 py-1.5 text-sm text-bad">{t("publishing.stale")}</p>
      )}
      {nothing && <p className="px-4 py-1.5 text-center text-sm text-quiet">{t("publishing.noneHint")}</p>}
    </div>
  );
}

function Nothing({ write }: { write: () => void }) {
  const { t } = useWords();
  return (
    <Empty icon="calendar" title={t("publishing.none")} hint={t("publishing.noneHint")}>
      <Button kind="main" onClick={write}>
        {t("publishing.new")}
      </Button>
    </Empty>
  );
}

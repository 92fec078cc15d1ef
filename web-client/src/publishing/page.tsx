/** The calendar of scheduled posts: by month, by week, or as a list. Posts are written, moved and opened from it. */
import { useMemo, useState } from "react";
import { navigate, type PublishingRoute } from "../app/router";
import { mayOperate } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../ui/states";
import { useValue } from "../ui/value";
import { AccountsDialog } from "./accounts";
import { connectionResult } from "./browser-connection";
import { Agenda } from "./calendar/agenda";
import { CalendarHeader } from "./calendar/calendar-header";
import { DraggedPostChip, type PostChipContext } from "./calendar/chip";
import { type CalendarView, daysOf, firstWeekday } from "./calendar/days";
import { useDrag } from "./calendar/drag";
import { MonthGrid } from "./calendar/month";
import { useLocalNow } from "./calendar/now";
import { WeekGrid } from "./calendar/week";
import type { LiveQuery } from "./live-query";
import type { ScheduledPost } from "./operations";
import { AttentionList } from "./posts/attention";
import { emptyDraft } from "./posts/composer";
import { NEW_POST, type OpenDialog, PublishingDialogs } from "./posts/dialogs";
import { type DueTime, dueTimeOf, nextFullHour } from "./posts/due-time";
import {
  type CalendarPosts,
  notifyRejection,
  useCalendarPosts,
  useMovePost,
  usePostsBySlot,
} from "./posts/posts";
import { readingsOf, rejectionOf } from "./posts/rejections";
import { useZone } from "./zone";
import { localOf, localTimeInSlot } from "./zones";

const LEAD_TIME_MS = 600_000;
const WIDE_SCREEN = "(min-width: 48rem)";

export function PublishingPage({ route }: { route: PublishingRoute }) {
  const isOperator = mayOperate(useViewer().roles);
  const zone = useZone();
  const now = useLocalNow(zone);
  const today = now.slice(0, 10);
  const view: CalendarView = route.view ?? (matchMedia(WIDE_SCREEN).matches ? "month" : "list");
  const day = route.day ?? today;
  const days = useMemo(() => daysOf(view, day, firstWeekday()), [view, day]);
  const calendar = useCalendarPosts(days, zone);
  const posts = calendar.data?.posts ?? [];
  const postsByDay = usePostsBySlot(posts, zone, "day");
  const postsByHour = usePostsBySlot(posts, zone, "hour");
  const result = useValue(connectionResult);
  const [areAccountsOpen, setAreAccountsOpen] = useState(result !== null && isOperator);
  const { openDialog, showDialog, chipContext, movePost } = usePostDialogs(route, view, calendar, now);

  const suggestTime = (slot: string) => suggestedTime(slot, now, zone);
  const createPost = (slot: string) =>
    showDialog({
      kind: "write",
      post: null,
      draft: emptyDraft(suggestTime(slot < today ? today : slot)),
      draftName: NEW_POST,
    });
  const openDay = (openedDay: string) => showDialog({ kind: "day", day: openedDay });
  const gridProps = {
    days,
    day,
    today,
    postsBySlot: view === "week" ? postsByHour : postsByDay,
    chipContext,
    openDay,
    createPost,
  };
  const hasNoPosts = calendar.isCurrent && !days.some((each) => postsByDay.has(each));
  return (
    <section aria-labelledby="publishing" className="flex h-full min-h-0 flex-col">
      <CalendarHeader
        view={view}
        day={day}
        days={days}
        createPost={() => createPost(day)}
        openAccounts={isOperator ? () => setAreAccountsOpen(true) : null}
      />
      <CalendarNotices calendar={calendar} isEmpty={hasNoPosts && view !== "list"} />
      <AttentionList chipContext={chipContext} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable area must be reachable by keyboard. */}
      <div data-scroller tabIndex={0} className="thin-scroll min-h-0 grow overflow-auto">
        {!calendar.data && calendar.error !== null && (
          <ErrorState error={calendar.error} retry={calendar.refresh} />
        )}
        {!calendar.data && calendar.error === null && <LoadingState />}
        {calendar.data && view === "month" && <MonthGrid {...gridProps} />}
        {calendar.data && view === "week" && <WeekGrid {...gridProps} now={now} />}
        {calendar.data && view === "list" && !hasNoPosts && <Agenda {...gridProps} />}
        {calendar.data && view === "list" && hasNoPosts && <NoPosts createPost={() => createPost(day)} />}
      </div>
      <DraggedPostChip drag={chipContext.drag} zone={zone} />
      <PublishingDialogs
        route={route}
        openDialog={openDialog}
        showDialog={showDialog}
        today={today}
        postsBySlot={postsByDay}
        chipContext={chipContext}
        suggestTime={suggestTime}
        movePost={movePost}
        openAccounts={() => setAreAccountsOpen(true)}
        onChanged={calendar.refresh}
      />
      {areAccountsOpen && (
        <AccountsDialog
          result={result}
          onClose={() => {
            setAreAccountsOpen(false);
            connectionResult.set(null);
          }}
        />
      )}
    </section>
  );
}

/** Returns the open dialog, the functions that open dialogs and move posts, and the context of the calendar's chips. */
function usePostDialogs(
  route: PublishingRoute,
  view: CalendarView,
  calendar: LiveQuery<CalendarPosts>,
  now: string,
) {
  const { t } = useTranslation();
  const viewer = useViewer();
  const zone = useZone();
  const [openDialog, setOpenDialog] = useState<OpenDialog | null>(null);
  const movePost = useMovePost(calendar);
  const drag = useDrag(moveToDropSlot);

  const navigateToPost = (post: string | null) =>
    navigate({ name: "publishing", view, day: route.day, post });
  function showDialog(next: OpenDialog | null) {
    setOpenDialog(next);
    if (route.post !== null) navigateToPost(null);
  }
  const chipContext: PostChipContext = {
    zone,
    drag,
    openPost: ({ id }) => {
      setOpenDialog(null);
      navigateToPost(id);
    },
    openMoveDialog: (post) =>
      showDialog({ kind: "move", post, initialTime: dueTimeOf(new Date(post.dueAt), zone), readings: null }),
    mayMove: (post) => post.state === "SCHEDULED" && post.author.id === viewer.id,
  };

  async function moveToDropSlot(post: ScheduledPost, slot: string) {
    const oldLocal = localOf(zone, new Date(post.dueAt));
    const local = localTimeInSlot(slot, oldLocal);
    const initialTime = { local, zone, reading: null };
    if (local === oldLocal.slice(0, 16)) return;
    // A post that is dropped on a past time would be published at once, so the user must confirm the time.
    if (local <= now) return showDialog({ kind: "move", post, initialTime, readings: null });
    try {
      await movePost(post, initialTime);
    } catch (error) {
      const rejection = rejectionOf(error);
      const readings = readingsOf(rejection);
      if (readings) showDialog({ kind: "move", post, initialTime, readings });
      else notifyRejection(error, rejection, t);
    }
  }
  return { openDialog, showDialog, chipContext, movePost };
}

/**
 * Suggests a time for a new post in a slot of the calendar: nine o'clock of a day, or the beginning of an hour. If that
 * time has passed, suggests the next full hour that is at least ten minutes away.
 */
function suggestedTime(slot: string, now: string, zone: string): DueTime {
  const local = slot.length === 10 ? `${slot}T09:00` : `${slot}:00`;
  if (local > now) return { local, zone, reading: null };
  return nextFullHour(new Date(Date.now() + LEAD_TIME_MS), zone);
}

function CalendarNotices({ calendar, isEmpty }: { calendar: LiveQuery<CalendarPosts>; isEmpty: boolean }) {
  const { t } = useTranslation();
  if (!calendar.data) return null;
  return (
    <div role="status">
      {calendar.data.isTruncated && (
        <p className="bg-wait-ground px-4 py-1.5 text-sm text-wait">{t("publishing.cut")}</p>
      )}
      {calendar.error !== null && (
        <p className="bg-bad-ground px-4 py-1.5 text-sm text-bad">{t("publishing.stale")}</p>
      )}
      {isEmpty && <p className="px-4 py-1.5 text-center text-sm text-quiet">{t("publishing.noneHint")}</p>}
    </div>
  );
}

function NoPosts({ createPost }: { createPost: () => void }) {
  const { t } = useTranslation();
  return (
    <EmptyState icon="calendar" title={t("publishing.none")} hint={t("publishing.noneHint")}>
      <Button kind="main" onClick={createPost}>
        {t("publishing.new")}
      </Button>
    </EmptyState>
  );
}

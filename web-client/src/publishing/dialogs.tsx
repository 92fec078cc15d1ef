/** The dialogs over the calendar: one post, a day's list, the composer, a move. At most one is open. */
import type { PublishingPlace } from "../app/router";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { useTranslation } from "../ui/preferences";
import { PostList } from "./agenda";
import type { ChipActions } from "./chip";
import { Composer, type Draft, draftOf, emptyDraft } from "./composer";
import { PostDialog } from "./details";
import { type DueTime, dueTimeOf } from "./due-time-fields";
import { dayText } from "./local-times";
import { MoveDialog } from "./move";
import type { ScheduledPost } from "./operations";
import type { Readings } from "./rejections";

export type OpenDialog =
  | { kind: "write"; draft: Draft; post: ScheduledPost | null }
  | { kind: "move"; post: ScheduledPost; initialTime: DueTime; readings: Readings | null }
  | { kind: "day"; day: string };

interface Props {
  place: PublishingPlace;
  open: OpenDialog | null;
  /** Replaces the open dialog; null closes it. */
  showDialog: (next: OpenDialog | null) => void;
  today: string;
  slots: ReadonlyMap<string, readonly ScheduledPost[]>;
  actions: ChipActions;
  /** A suitable time for a new post on a day. */
  suggestTime: (day: string) => DueTime;
  move: (post: ScheduledPost, dueAt: string, zone: string) => Promise<void>;
  connect: () => void;
  /** Called when a post was scheduled or changed. */
  onChanged: () => void;
}

export function Dialogs(props: Props) {
  const { place, open, showDialog, today, actions, suggestTime, move, connect, onChanged } = props;
  const { zone } = actions;
  const close = () => showDialog(null);
  const write = (draft: Draft, post: ScheduledPost | null) => showDialog({ kind: "write", draft, post });

  if (open?.kind === "day") return <DayDialog day={open.day} write={write} {...props} />;
  if (open?.kind === "move")
    return (
      <MoveDialog
        post={open.post}
        initialTime={open.initialTime}
        readings={open.readings}
        move={move}
        onClose={close}
      />
    );
  if (open?.kind === "write" || place.post === "new")
    return (
      <Composer
        draft={open?.draft ?? emptyDraft(suggestTime(today))}
        post={open?.post ?? null}
        connect={connect}
        onDone={() => {
          close();
          onChanged();
        }}
        onClose={close}
      />
    );
  if (place.post === null) return null;
  return (
    <PostDialog
      key={place.post}
      id={place.post}
      zone={zone}
      edit={(post) => write(draftOf(post, dueTimeOf(new Date(post.dueAt), post.timeZone)), post)}
      copy={(post) => write(draftOf(post, suggestTime(today)), null)}
      move={actions.move}
      onClose={close}
    />
  );
}

interface DayProps extends Props {
  day: string;
  write: (draft: Draft, post: null) => void;
}

function DayDialog({ day, today, slots, actions, showDialog, suggestTime, write }: DayProps) {
  const { t, language } = useTranslation();
  const posts = slots.get(day) ?? [];
  return (
    <Dialog title={dayText(language, day, today)} onClose={() => showDialog(null)}>
      {posts.length === 0 && <p className="text-quiet">{t("publishing.none")}</p>}
      <PostList posts={posts} actions={actions} />
      {day >= today && (
        <Button kind="main" className="mt-4" onClick={() => write(emptyDraft(suggestTime(day)), null)}>
          {t("publishing.new")}
        </Button>
      )}
    </Dialog>
  );
}

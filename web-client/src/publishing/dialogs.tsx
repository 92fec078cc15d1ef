/** The dialogs over the calendar: one post, a day's list, the composer, a move. At most one is open. */
import type { PublishingPlace } from "../app/router";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { useTranslation } from "../ui/preferences";
import { PostList } from "./agenda";
import type { ChipContext } from "./chip";
import { type Draft, draftOf, emptyDraft, ScheduledPostComposer } from "./composer";
import { PostDialog } from "./details";
import { type DueTime, dueTimeOf } from "./due-time";
import { dayText } from "./local-times";
import { MoveDialog } from "./move";
import type { ScheduledPost } from "./operations";
import type { TimeReadings } from "./rejections";

export type OpenDialog =
  | { kind: "write"; draft: Draft; draftName: string; post: ScheduledPost | null }
  | { kind: "move"; post: ScheduledPost; initialTime: DueTime; readings: TimeReadings | null }
  | { kind: "day"; day: string };

/** Names of drafts. A change of the post by somebody else ends the draft of an edit. */
export const NEW_POST = "new";
const copyOf = ({ id }: ScheduledPost) => `copy ${id}`;
const editOf = ({ id, revision }: ScheduledPost) => `edit ${id} ${revision}`;

interface Props {
  place: PublishingPlace;
  openDialog: OpenDialog | null;
  /** Replaces the open dialog; null closes it. */
  showDialog: (next: OpenDialog | null) => void;
  today: string;
  postsBySlot: ReadonlyMap<string, readonly ScheduledPost[]>;
  chipContext: ChipContext;
  /** Returns a suitable time for a new post on a day. */
  suggestTime: (day: string) => DueTime;
  /** Changes the due time of a post at the server. */
  movePost: (post: ScheduledPost, dueAt: string, zone: string) => Promise<void>;
  openAccounts: () => void;
  /** Called when a post was scheduled or changed. */
  onChanged: () => void;
}

export function Dialogs(props: Props) {
  const {
    place,
    openDialog,
    showDialog,
    today,
    chipContext,
    suggestTime,
    movePost,
    openAccounts,
    onChanged,
  } = props;
  const { zone } = chipContext;
  const close = () => showDialog(null);
  const write = (draft: Draft, draftName: string, post: ScheduledPost | null = null) =>
    showDialog({ kind: "write", draft, draftName, post });

  if (openDialog?.kind === "day") return <DayDialog day={openDialog.day} write={write} {...props} />;
  if (openDialog?.kind === "move")
    return (
      <MoveDialog
        post={openDialog.post}
        initialTime={openDialog.initialTime}
        readings={openDialog.readings}
        movePost={movePost}
        onClose={close}
      />
    );
  if (openDialog?.kind === "write" || place.post === "new")
    return (
      <ScheduledPostComposer
        draft={openDialog?.draft ?? emptyDraft(suggestTime(today))}
        draftName={openDialog?.draftName ?? NEW_POST}
        post={openDialog?.post ?? null}
        openAccounts={openAccounts}
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
      edit={(post) =>
        write(draftOf(post, dueTimeOf(new Date(post.dueAt), post.timeZone)), editOf(post), post)
      }
      copy={(post) => write(draftOf(post, suggestTime(today)), copyOf(post))}
      openMoveDialog={chipContext.openMoveDialog}
      onClose={close}
    />
  );
}

interface DayProps extends Props {
  day: string;
  write: (draft: Draft, draftName: string) => void;
}

function DayDialog({ day, today, postsBySlot, chipContext, showDialog, suggestTime, write }: DayProps) {
  const { t, language } = useTranslation();
  const posts = postsBySlot.get(day) ?? [];
  return (
    <Dialog title={dayText(language, day, today)} onClose={() => showDialog(null)}>
      {posts.length === 0 && <p className="text-quiet">{t("publishing.none")}</p>}
      <PostList posts={posts} chipContext={chipContext} />
      {day >= today && (
        <Button kind="main" className="mt-4" onClick={() => write(emptyDraft(suggestTime(day)), NEW_POST)}>
          {t("publishing.new")}
        </Button>
      )}
    </Dialog>
  );
}

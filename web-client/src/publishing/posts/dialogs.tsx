/** The dialogs over the calendar: one post, a day's list, the composer, a move. At most one is open. */
import { request, useApi } from "../../api/api";
import type { PublishingRoute } from "../../app/router";
import type { Attachment } from "../../files/operations";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialogs/dialog";
import { useTranslation } from "../../ui/preferences";
import { notifyFailure } from "../../ui/toasts";
import { PostList } from "../calendar/agenda";
import type { PostChipContext } from "../calendar/chip";
import { MovePostDialog } from "../calendar/move";
import { dayText } from "../local-times";
import { AddToLibrary, type DetailedPost, type ScheduledPost } from "../operations";
import { draftOf, emptyDraft, ScheduledPostComposer, type ScheduledPostDraft } from "./composer";
import { copyFiles } from "./copied-files";
import { PostDialog } from "./details";
import { type DueTime, dueTimeOf } from "./due-time";
import type { TimeReadings } from "./rejections";

export type OpenDialog =
  | {
      kind: "write";
      draft: ScheduledPostDraft;
      draftName: string;
      post: DetailedPost | null;
      copiedFiles?: readonly Attachment[];
      /** Names of the files of a copied post that can't be used again. */
      missingFiles?: readonly string[];
    }
  | { kind: "move"; post: ScheduledPost; initialTime: DueTime; readings: TimeReadings | null }
  | { kind: "day"; day: string };

/** Names of drafts. That of an edit has the post's revision, so that a change of the post begins a new draft. */
export const NEW_POST = "new";
const copyOf = ({ id }: ScheduledPost) => `copy ${id}`;
const editOf = ({ id, revision }: ScheduledPost) => `edit ${id} ${revision}`;

interface Props {
  route: PublishingRoute;
  openDialog: OpenDialog | null;
  /** Replaces the open dialog; null closes it. */
  showDialog: (next: OpenDialog | null) => void;
  today: string;
  postsBySlot: ReadonlyMap<string, readonly ScheduledPost[]>;
  chipContext: PostChipContext;
  /** Returns a suitable time for a new post on a day. */
  suggestTime: (day: string) => DueTime;
  /** Changes the due time of a post at the server. */
  movePost: (post: ScheduledPost, dueTime: DueTime) => Promise<void>;
  openAccounts: () => void;
  /** Called when a post was scheduled or changed. */
  onChanged: () => void;
}

export function PublishingDialogs(props: Props) {
  const {
    route,
    openDialog,
    showDialog,
    today,
    chipContext,
    suggestTime,
    movePost,
    openAccounts,
    onChanged,
  } = props;
  const { direct } = useApi();
  const { zone } = chipContext;
  const close = () => showDialog(null);
  const write = (draft: ScheduledPostDraft, draftName: string, post: DetailedPost | null = null) =>
    showDialog({ kind: "write", draft, draftName, post });

  async function copy(post: DetailedPost) {
    const keep = (file: Attachment) =>
      request(direct, AddToLibrary, { uploadId: file.id, altText: file.altText });
    const files = await copyFiles(post.attachments, keep);
    const draft = draftOf(post, suggestTime(today));
    showDialog({ kind: "write", draft, draftName: copyOf(post), post: null, ...files });
  }

  if (openDialog?.kind === "day") return <DayDialog day={openDialog.day} write={write} {...props} />;
  if (openDialog?.kind === "move")
    return (
      <MovePostDialog
        post={openDialog.post}
        initialTime={openDialog.initialTime}
        readings={openDialog.readings}
        movePost={movePost}
        onClose={close}
      />
    );
  if (openDialog?.kind === "write" || route.post === "new")
    return (
      <ScheduledPostComposer
        draft={openDialog?.draft ?? emptyDraft(suggestTime(today))}
        draftName={openDialog?.draftName ?? NEW_POST}
        post={openDialog?.post ?? null}
        copiedFiles={openDialog?.copiedFiles}
        missingFiles={openDialog?.missingFiles}
        openAccounts={openAccounts}
        onDone={() => {
          close();
          onChanged();
        }}
        onClose={close}
      />
    );
  if (route.post === null) return null;
  return (
    <PostDialog
      key={route.post}
      id={route.post}
      zone={zone}
      edit={(post) =>
        write(draftOf(post, dueTimeOf(new Date(post.dueAt), post.timeZone)), editOf(post), post)
      }
      copy={(post) => void copy(post).catch(notifyFailure)}
      openMoveDialog={chipContext.openMoveDialog}
      onClose={close}
    />
  );
}

interface DayDialogProps extends Props {
  day: string;
  write: (draft: ScheduledPostDraft, draftName: string) => void;
}

function DayDialog({ day, today, postsBySlot, chipContext, showDialog, suggestTime, write }: DayDialogProps) {
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

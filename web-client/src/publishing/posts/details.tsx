/** One scheduled post: content, time, state of each target, and actions. */
import { useCallback, useState } from "react";
import { request, useApi } from "../../api/api";
import { AttachmentList } from "../../files/attachment-list";
import { useViewer } from "../../session/viewer";
import { Button } from "../../ui/button";
import { ConfirmDialog } from "../../ui/dialogs/confirm";
import { Dialog } from "../../ui/dialogs/dialog";
import { useTranslation } from "../../ui/preferences";
import { ErrorState, LoadingState } from "../../ui/states";
import { RichText } from "../../ui/text/rich-text";
import { notify, notifyFailure } from "../../ui/toasts";
import { useLiveQuery } from "../live-query";
import { instantText } from "../local-times";
import {
  CancelPost,
  type DetailedPost,
  type PublicationState,
  type ScheduledPost,
  ScheduledPostById,
} from "../operations";
import { PublicationRow } from "./publication-row";
import { PostStateBadge } from "./state-badge";

interface Props {
  id: string;
  zone: string;
  edit: (post: DetailedPost) => void;
  openMoveDialog: (post: ScheduledPost) => void;
  /** Opens the composer with a copy of the post. */
  copy: (post: DetailedPost) => void;
  onClose: () => void;
}

export function PostDialog({ id, onClose, ...rest }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const load = useCallback(
    async () => (await request(direct, ScheduledPostById, { id })).scheduledPost,
    [direct, id],
  );
  const { data, error, refresh } = useLiveQuery<DetailedPost | null>(load, id);
  return (
    <Dialog title={t("publishing.post")} onClose={onClose}>
      {data && <PostDetails post={data} refresh={refresh} {...rest} />}
      {!data && error !== null && <ErrorState error={error} retry={refresh} />}
      {!data && error === null && <LoadingState rows={3} />}
    </Dialog>
  );
}

type PostDetailsProps = Omit<Props, "id" | "onClose"> & { post: DetailedPost; refresh: () => void };

function PostDetails({ post, zone, refresh, edit, openMoveDialog, copy }: PostDetailsProps) {
  const { t, language } = useTranslation();
  const viewer = useViewer();
  const isOwn = post.author.id === viewer.id;
  const isScheduled = post.publications.every(({ state }) => isWaiting(state));
  const dueAt = new Date(post.dueAt);
  return (
    <div className="flex flex-col gap-4" data-post-state={post.state}>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <PostStateBadge state={post.state} />
        <time dateTime={post.dueAt} className="font-semibold">
          {instantText(language, zone, dueAt)}
        </time>
        {post.timeZone !== zone && (
          <span className="text-sm text-quiet">
            {t("publishing.elsewhere", {
              time: instantText(language, post.timeZone, dueAt),
              zone: post.timeZone,
            })}
          </span>
        )}
        {!isOwn && (
          <span className="text-sm text-quiet">{t("publishing.by", { name: post.author.name })}</span>
        )}
      </div>
      {post.text && (
        <div className="rounded-card bg-well p-3">
          <RichText text={post.text} mentions={[]} />
        </div>
      )}
      <AttachmentList attachments={post.attachments} />
      {post.media.length > 0 && (
        <ul className="text-sm">
          {post.media.map(({ url, altText, kind }) => (
            <li key={url} className="truncate">
              {t(`publishing.media.${kind}`)}:{" "}
              <a href={url} target="_blank" rel="noreferrer noopener" className="text-accent underline">
                {altText || url}
              </a>
            </li>
          ))}
        </ul>
      )}
      <section aria-label={t("publishing.targets")}>
        <ul className="flex flex-col gap-2">
          {post.detailedPublications.map((publication) => (
            <PublicationRow key={publication.id} publication={publication} zone={zone} refresh={refresh} />
          ))}
        </ul>
      </section>
      <div className="flex flex-wrap justify-end gap-2">
        <Button onClick={() => copy(post)}>{t("publishing.copy")}</Button>
        {post.editable && <CancelPostButton post={post} refresh={refresh} />}
        {isOwn && isScheduled && <Button onClick={() => edit(post)}>{t("publishing.edit")}</Button>}
        {isOwn && isScheduled && (
          <Button kind="main" onClick={() => openMoveDialog(post)}>
            {t("publishing.move")}
          </Button>
        )}
      </div>
      {!isOwn && isScheduled && <p className="text-sm text-quiet">{t("publishing.onlyAuthor")}</p>}
    </div>
  );
}

/** Whether nothing was published, and no worker is publishing. */
function isWaiting(state: PublicationState): boolean {
  return state === "SCHEDULED" || state === "NEEDS_ATTENTION";
}

function CancelPostButton({ post, refresh }: { post: DetailedPost; refresh: () => void }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [isConfirming, setIsConfirming] = useState(false);
  async function handleAnswer(isConfirmed: boolean) {
    setIsConfirming(false);
    if (!isConfirmed) return;
    await request(direct, CancelPost, { id: post.id }).then(
      () => notify(t("publishing.cancelled")),
      notifyFailure,
    );
    refresh();
  }
  return (
    <>
      <Button onClick={() => setIsConfirming(true)}>{t("publishing.cancel")}</Button>
      {isConfirming && (
        <ConfirmDialog
          title={t("publishing.cancel")}
          text={t("publishing.cancelAsk")}
          action={t("publishing.cancel")}
          keepLabel={t("publishing.keep")}
          onDone={handleAnswer}
        />
      )}
    </>
  );
}

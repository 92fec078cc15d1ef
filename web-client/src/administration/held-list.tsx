/** Scheduled posts of deactivated people. An administrator schedules each again with another author, or cancels it. */
import { useCallback, useState } from "react";
import { request, useApi } from "../api/api";
import { dateAndTime } from "../i18n/times";
import { targetText } from "../publishing/posts/targets";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { Avatar } from "../ui/avatar";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { FormDialog } from "../ui/dialogs/form-dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { PersonField } from "../ui/fields/person-field";
import type { Person } from "../ui/fields/person-option";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { notify, notifyError } from "../ui/toasts";
import { CancelHeldPost, type HeldPost, HeldPosts, ReleaseHeldPost } from "./held-operations";
import { useUserSearch } from "./use-user-search";

const keyOf = ({ id }: HeldPost) => id;

export function HeldPostList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const loadPage = useCallback(
    async (after: HeldPost | null) =>
      (await request(direct, HeldPosts, { after: after?.id ?? null, limit: PAGE_SIZE })).heldScheduledPosts,
    [direct],
  );
  const posts = usePagedList(loadPage, keyOf);
  return (
    <>
      <p className="mb-2 text-quiet">{t("held.hint")}</p>
      <PagedRows
        list={posts}
        label={t("admin.held")}
        empty={<EmptyState icon="check" title={t("held.none")} hint={t("held.noneHint")} />}
      >
        {(post) => (
          <HeldPostRow
            key={post.id}
            post={post}
            onDecided={() => posts.change((each) => (each.id === post.id ? null : each))}
          />
        )}
      </PagedRows>
    </>
  );
}

interface HeldPostRowProps {
  post: HeldPost;
  onDecided: () => void;
}

function HeldPostRow({ post, onDecided }: HeldPostRowProps) {
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const [openDialog, setOpenDialog] = useState<"release" | "cancel" | null>(null);
  const { author, text, media, dueAt, publications } = post;
  const close = () => setOpenDialog(null);
  async function cancel(isConfirmed: boolean) {
    close();
    if (!isConfirmed) return;
    try {
      await request(direct, CancelHeldPost, { id: post.id });
      notify(t("held.cancelled"));
      onDecided();
    } catch (error) {
      notifyError(error);
    }
  }
  return (
    <li data-held={post.id} className="flex gap-3 border-b border-line py-3">
      <Avatar user={author} />
      <div className="min-w-0 grow">
        <p className="font-semibold">{author.name}</p>
        <p className="whitespace-pre-wrap break-words">{text || t("held.media", { count: media.length })}</p>
        <p className="text-sm text-quiet">
          {t("held.due", { time: dateAndTime(language, new Date(dueAt)) })} ·{" "}
          {publications.map(({ target }) => targetText(target, t)).join(t("list.comma"))}
        </p>
        <div className="mt-2 flex flex-wrap gap-2">
          <Button
            onClick={() => setOpenDialog("release")}
            aria-label={t("held.releaseNamed", { name: author.name })}
          >
            {t("held.release")}
          </Button>
          <Button
            onClick={() => setOpenDialog("cancel")}
            aria-label={t("held.cancelNamed", { name: author.name })}
          >
            {t("held.cancel")}
          </Button>
        </div>
      </div>
      {openDialog === "release" && (
        <ReleaseDialog
          post={post}
          onClose={close}
          onReleased={() => {
            close();
            onDecided();
          }}
        />
      )}
      {openDialog === "cancel" && (
        <ConfirmDialog
          title={t("held.cancelNamed", { name: author.name })}
          text={t("held.cancelAsk")}
          action={t("held.cancel")}
          keepLabel={t("held.keep")}
          onDone={cancel}
        />
      )}
    </li>
  );
}

interface ReleaseDialogProps {
  post: HeldPost;
  onClose: () => void;
  onReleased: () => void;
}

function ReleaseDialog({ post, onClose, onReleased }: ReleaseDialogProps) {
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const [person, setPerson] = useState<Person | null>(null);
  /** A local time of the browser such as 2030-01-01T12:00; null keeps the post's time. */
  const [newTime, setNewTime] = useState<string | null>(null);
  const find = useUserSearch(false);
  async function release() {
    if (!person) return;
    // In UTC, which is unambiguous in every time zone.
    const dueAt = newTime && new Date(newTime).toISOString();
    await request(direct, ReleaseHeldPost, { id: post.id, userId: person.id, dueAt });
    notify(t("held.released", { name: person.name }));
    onReleased();
  }
  return (
    <FormDialog
      title={t("held.releaseTitle", { name: post.author.name })}
      text={t("held.releaseHint")}
      action={t("held.releaseNow")}
      canSubmit={person !== null && (newTime === null || new Date(newTime) > new Date())}
      submit={release}
      onClose={onClose}
    >
      <PersonField label={t("held.author")} value={person} onChange={setPerson} find={find} />
      <LabelledField
        label={t("held.newTime")}
        hint={t("held.newTimeHint", { time: dateAndTime(language, new Date(post.dueAt)) })}
      >
        {(props) => (
          <input
            {...props}
            type="datetime-local"
            className="field"
            value={newTime ?? ""}
            onChange={(event) => setNewTime(event.target.value || null)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}

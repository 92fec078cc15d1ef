/** The heading of an open topic, with the actions of moderators on the topic. */

import { type ReactNode, useState } from "react";
import { request, useApi } from "../../api/api";
import { LIMITS } from "../../api/limits";
import { hrefOf } from "../../app/router";
import type { CommunityVisibility } from "../../moderation/operations";
import { type CommunityRights, mayModerate } from "../../moderation/rights";
import { NotificationMenu } from "../../push/notification-menu";
import { mayAdminister } from "../../session/permissions";
import { useViewer } from "../../session/viewer";
import { Badge } from "../../ui/badge";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { Menu } from "../../ui/dialogs/menu";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useLength } from "../../ui/fields/length";
import { Icon } from "../../ui/icons";
import { PageTitle } from "../../ui/page-title";
import { useTranslation } from "../../ui/preferences";
import { notify, notifyFailure } from "../../ui/toasts";
import { durationText } from "../composer/slow-mode";
import { SlowModeDialog } from "../composer/slow-mode-dialog";
import { ArchiveTopic, RenameTopic, UnarchiveTopic } from "../operations";

export interface TopicSummary {
  id: string;
  title: string;
  /** Id of the message to which the messages of a thread reply; null for other topics. */
  parentMessageId: string | null;
  archivedAt: string | null;
  muted: boolean;
  readUpTo: string | null;
  unreadCount: number;
  slowModeSeconds: number;
  community: {
    id: string;
    name: string;
    memberCount: number;
    joined: boolean;
    visibility: CommunityVisibility;
    viewerRole: CommunityRights["role"];
    viewerMutedUntil: string | null;
    archivedAt: string | null;
  };
}

interface TopicHeadingProps {
  topic: TopicSummary;
  /** Whether an open thread covers the topic. */
  isCovered: boolean;
}

export function TopicHeading({ topic, isCovered }: TopicHeadingProps) {
  const { t, language } = useTranslation();
  const { id, title, slowModeSeconds, community } = topic;
  const rights = { role: community.viewerRole, isAdmin: mayAdminister(useViewer().roles) };
  return (
    <header
      inert={isCovered}
      className="flex min-h-14 items-center gap-2 border-b border-line px-3 py-2 sm:px-5"
    >
      <a
        href={hrefOf({ name: "chat" })}
        aria-label={t("back")}
        className="rounded-full p-2 text-quiet hover:bg-hover md:hidden"
      >
        <Icon name="back" />
      </a>
      <div className="min-w-0 grow">
        <div className="flex items-center gap-2">
          <PageTitle name={isCovered ? t("thread.of", { topic: title }) : title} />
          <h1 id="topic-title" className="truncate text-lg font-semibold">
            {title}
          </h1>
          {topic.archivedAt && <Badge tone="wait">{t("archive.badge")}</Badge>}
        </div>
        <p className="truncate text-sm text-quiet">
          {community.name} · {t("members", { count: community.memberCount })}
          {slowModeSeconds > 0 &&
            ` · ${t("slowMode.every", { duration: durationText(language, slowModeSeconds) })}`}
        </p>
      </div>
      {mayModerate(rights) && !community.archivedAt && <TopicActions topic={topic} />}
      {community.joined && (
        <NotificationMenu id={id} communityId={community.id} name={title} isMuted={topic.muted} />
      )}
      <a
        href={hrefOf({ name: "community", id: community.id, tab: "members", person: null })}
        aria-label={t("members.of", { name: community.name })}
        title={t("members.of", { name: community.name })}
        className="inline-flex size-9 shrink-0 items-center justify-center rounded-full text-quiet hover:bg-hover hover:text-ink"
      >
        <Icon name="people" />
      </a>
    </header>
  );
}

type TopicDialogName = "rename" | "slowMode" | "archive";

function TopicActions({ topic: { id, title, archivedAt, slowModeSeconds } }: { topic: TopicSummary }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [dialog, setDialog] = useState<TopicDialogName | null>(null);
  const close = () => setDialog(null);
  const reopen = () =>
    request(cached, UnarchiveTopic, { id }).then(
      () => notify(t("archive.reopened", { name: title })),
      notifyFailure,
    );
  const dialogs: Record<TopicDialogName, ReactNode> = {
    rename: <RenameDialog id={id} title={title} onClose={close} />,
    slowMode: <SlowModeDialog topicId={id} seconds={slowModeSeconds} onClose={close} />,
    archive: <ArchiveDialog id={id} title={title} onClose={close} />,
  };
  return (
    <>
      <Menu
        label={t("topic.actions")}
        items={[
          { key: "rename", text: t("topic.rename"), run: () => setDialog("rename") },
          { key: "slowMode", text: t("slowMode.action"), run: () => setDialog("slowMode") },
          archivedAt
            ? { key: "reopen", text: t("topic.reopen"), run: () => void reopen() }
            : { key: "archive", text: t("topic.archive"), run: () => setDialog("archive") },
        ]}
      />
      {dialog && dialogs[dialog]}
    </>
  );
}

interface TopicDialogProps {
  id: string;
  title: string;
  onClose: () => void;
}

function RenameDialog({ id, title, onClose }: TopicDialogProps) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [text, setText] = useState(title);
  const length = useLength(text, LIMITS.topicTitle);
  const newTitle = text.trim();
  async function save() {
    await request(cached, RenameTopic, { id, title: newTitle });
    notify(t("topic.renamed", { name: newTitle }));
    onClose();
  }
  return (
    <FormDialog
      title={t("topic.renameTitle")}
      action={t("save")}
      canSubmit={newTitle !== "" && newTitle !== title && !length.isTooLong}
      submit={save}
      onClose={onClose}
    >
      <LabelledField label={t("topic.title")} length={length}>
        {(props) => (
          <input
            {...props}
            className="field"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </LabelledField>
    </FormDialog>
  );
}

function ArchiveDialog({ id, title, onClose }: TopicDialogProps) {
  const { t } = useTranslation();
  const { cached } = useApi();
  async function archive() {
    await request(cached, ArchiveTopic, { id });
    notify(t("archive.archived", { name: title }));
    onClose();
  }
  return (
    <FormDialog
      title={t("topic.archiveTitle")}
      text={t("topic.archiveAsk", { name: title })}
      action={t("archive.now")}
      canSubmit
      submit={archive}
      onClose={onClose}
    />
  );
}

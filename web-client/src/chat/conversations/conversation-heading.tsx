/** The heading of an open conversation, with its people and its actions. */

import { type ReactNode, useState } from "react";
import { request, useApi } from "../../api/api";
import { LIMITS } from "../../api/limits";
import { hrefOf, navigate } from "../../app/router";
import { useIsOnline } from "../../presence/presence";
import { NotificationMenu } from "../../push/notification-menu";
import { useViewer } from "../../session/viewer";
import { Avatar } from "../../ui/avatar";
import { Badge } from "../../ui/badge";
import { IconButton } from "../../ui/button";
import { Dialog } from "../../ui/dialogs/dialog";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { Menu } from "../../ui/dialogs/menu";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useLength } from "../../ui/fields/length";
import type { Person } from "../../ui/fields/person-option";
import { Icon } from "../../ui/icons";
import { PageTitle } from "../../ui/page-title";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import { AddToConversation, type Conversation, LeaveConversation, RenameConversation } from "./operations";
import { otherPeople, titleOf } from "./people";
import { PeopleField } from "./people-field";

type ConversationDialogName = "people" | "add" | "rename" | "leave";

interface Props {
  conversation: Conversation;
  isMuted: boolean;
  /** Whether an open thread covers the conversation. */
  isCovered: boolean;
}

export function ConversationHeading({ conversation, isMuted, isCovered }: Props) {
  const { t } = useTranslation();
  const viewer = useViewer();
  const [dialog, setDialog] = useState<ConversationDialogName | null>(null);
  const { id, isGroup, people, state, topic } = conversation;
  const title = titleOf(conversation, viewer.id, t);
  const [partner] = otherPeople(conversation, viewer.id);
  const isPartnerOnline = useIsOnline(isGroup ? null : (partner?.id ?? null));
  const close = () => setDialog(null);
  const dialogs: Record<ConversationDialogName, ReactNode> = {
    people: <PeopleDialog conversation={conversation} onClose={close} />,
    add: <AddPeopleDialog conversation={conversation} onClose={close} />,
    rename: <RenameDialog conversation={conversation} onClose={close} />,
    leave: <LeaveDialog id={id} onClose={close} />,
  };
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
        <PageTitle name={isCovered ? t("thread.of", { topic: title }) : title} />
        <h1 id="topic-title" className="truncate text-lg font-semibold">
          {title}
        </h1>
        <p className="truncate text-sm text-quiet">
          {isGroup ? t("conversation.group", { count: people.length }) : t("conversation.pair")}
          {isPartnerOnline && ` · ${t("presence.online")}`}
        </p>
      </div>
      {state === "JOINED" && (
        <>
          <Menu
            label={t("conversation.actions")}
            items={[
              ...(isGroup
                ? [
                    { key: "add", text: t("conversation.add"), run: () => setDialog("add") },
                    { key: "rename", text: t("conversation.rename"), run: () => setDialog("rename") },
                  ]
                : []),
              {
                key: "leave",
                text: t("conversation.leave"),
                isDestructive: true,
                run: () => setDialog("leave"),
              },
            ]}
          />
          <NotificationMenu id={topic.id} communityId={null} name={title} isMuted={isMuted} />
        </>
      )}
      <IconButton icon="people" label={t("conversation.people")} onClick={() => setDialog("people")} />
      {dialog && dialogs[dialog]}
    </header>
  );
}

interface ConversationDialogProps {
  conversation: Conversation;
  onClose: () => void;
}

function PeopleDialog({ conversation, onClose }: ConversationDialogProps) {
  const { t } = useTranslation();
  return (
    <Dialog title={t("conversation.people")} onClose={onClose}>
      <ul className="flex flex-col gap-1">
        {conversation.people.map(({ user, joined }) => (
          <li key={user.id}>
            <a
              href={hrefOf({ name: "person", id: user.id })}
              className="flex items-center gap-3 rounded-lg px-2 py-1.5 hover:bg-hover"
            >
              <Avatar user={user} />
              <span className="min-w-0 grow">
                <span className="block truncate font-medium">{user.name}</span>
                <span className="block truncate text-sm text-quiet">@{user.handle}</span>
              </span>
              {!joined && <Badge tone="quiet">{t("conversation.notJoined")}</Badge>}
            </a>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function AddPeopleDialog({ conversation: { id, people: current }, onClose }: ConversationDialogProps) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [people, setPeople] = useState<readonly Person[]>([]);
  async function submit() {
    await request(cached, AddToConversation, { id, userIds: people.map((each) => each.id) });
    onClose();
  }
  return (
    <FormDialog
      title={t("conversation.addTitle")}
      action={t("conversation.addNow")}
      canSubmit={people.length > 0}
      submit={submit}
      onClose={onClose}
    >
      <PeopleField
        label={t("conversation.to")}
        people={people}
        onChange={setPeople}
        excludedIds={current.map(({ user }) => user.id)}
        maxCount={LIMITS.conversationPeople - current.length}
      />
    </FormDialog>
  );
}

function RenameDialog({ conversation: { id, name }, onClose }: ConversationDialogProps) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [text, setText] = useState(name);
  const length = useLength(text, LIMITS.groupName);
  async function submit() {
    await request(cached, RenameConversation, { id, name: text.trim() });
    onClose();
  }
  return (
    <FormDialog
      title={t("conversation.renameTitle")}
      action={t("save")}
      canSubmit={text.trim() !== name && !length.isTooLong}
      submit={submit}
      onClose={onClose}
    >
      <LabelledField label={t("conversation.groupName")} length={length}>
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

function LeaveDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  async function submit() {
    await request(cached, LeaveConversation, { id });
    notify(t("conversation.left"));
    navigate({ name: "chat" });
  }
  return (
    <FormDialog
      title={t("conversation.leaveTitle")}
      text={t("conversation.leaveAsk")}
      action={t("conversation.leaveNow")}
      kind="bad"
      canSubmit
      submit={submit}
      onClose={onClose}
    />
  );
}

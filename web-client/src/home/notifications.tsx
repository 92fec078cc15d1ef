/** The pages with the viewer's notifications and with reactions to the viewer's messages. */
import type { ReactNode } from "react";
import { useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { useCurrent, useWatchedMessages, useWatchedPosts } from "../api/current-text";
import { hrefOf, type Route } from "../app/router";
import type { TextKey } from "../i18n/texts";
import { dateOf, relativeTime } from "../i18n/times";
import { ReactionPicture } from "../stamps/reaction-picture";
import { withoutItem } from "../timeline/window";
import { Avatar } from "../ui/avatar";
import { Icon } from "../ui/icons";
import { type Translate, useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { plainText } from "../ui/text/formatting";
import { Sentence } from "../ui/text/sentence";
import { useValue } from "../ui/value";
import { FeedList, GroupedFeedList } from "./feed-list";
import { FeedTabs } from "./feed-tabs";
import {
  type Actor,
  actorsOf,
  emojisOf,
  groupNotifications,
  hasUnread,
  isAboutAccount,
  type NotificationGroup,
} from "./notification-groups";
import {
  MarkNotificationsRead,
  type Notification,
  Notifications,
  ReactionsReceived,
  type ReceivedReaction,
} from "./operations";
import { newestNotification, removedNotification, unreadCount } from "./unread";
import { useFeed } from "./use-feed";

function NotificationTabs() {
  return <FeedTabs title="notifications" names={["notifications", "reactions", "notificationSettings"]} />;
}

export function NotificationsPage() {
  const { t } = useTranslation();
  const { direct } = useApi();
  // The read mark when the page was opened. It stays, so that the new notifications stay marked on this page.
  const [readUpTo, setReadUpTo] = useState<string | null | undefined>(undefined);
  const feed = useFeed<Notification>(async (latest, inclusive) => {
    const { page } = await request(direct, Notifications, { latest, inclusive });
    setReadUpTo((current) => (current === undefined ? page.readUpTo : current));
    return page;
  });
  const isMarkKnown = readUpTo !== undefined;
  const newNotification = useValue(newestNotification);
  const { items } = useValue(feed.state).window;
  const newestTimestamp = items.at(-1)?.timestamp;
  useWatchedMessages(items.flatMap(({ message }) => message ?? []).reverse());
  useWatchedPosts(items.some(({ post }) => post !== null));
  useEffect(() => {
    if (newNotification) feed.put(newNotification);
  }, [newNotification, feed]);
  useEffect(
    () =>
      removedNotification.watch(() => {
        const id = removedNotification.get();
        if (id) feed.apply((window) => withoutItem(window, id));
      }),
    [feed],
  );
  useEffect(() => {
    // An event may be in the list before the first page, which has the mark that must be known before it moves.
    if (!newestTimestamp || !isMarkKnown) return;
    request(direct, MarkNotificationsRead, { timestamp: newestTimestamp }).then(
      ({ markNotificationsRead: unreadLeft }) => unreadCount.set(unreadLeft),
      () => {}, // The next request moves the read mark.
    );
  }, [direct, newestTimestamp, isMarkKnown]);
  return (
    <GroupedFeedList
      feed={feed}
      rowsOf={groupNotifications}
      head={<NotificationTabs />}
      empty={<EmptyState icon="bell" title={t("notifications.none")} hint={t("notifications.noneHint")} />}
    >
      {(group) => (
        <NotificationRow key={group.key} group={group} isUnread={isMarkKnown && hasUnread(group, readUpTo)} />
      )}
    </GroupedFeedList>
  );
}

function NotificationRow({ group, isUnread }: { group: NotificationGroup; isUnread: boolean }) {
  const { t } = useTranslation();
  const { warning, reportOutcome, timestamp } = group.newest;
  const message = useCurrent(group.newest.message);
  const post = useCurrent(group.newest.post);
  return (
    <NotificationLinkRow
      to={groupRoute(group)}
      at={timestamp}
      title={<NotificationText group={group} />}
      preview={
        warning ??
        (reportOutcome && t(`report.decided.${reportOutcome}`)) ??
        (message && messagePreview(message, t)) ??
        (post?.deletedAt ? t("post.gone") : plainText(post?.text ?? ""))
      }
      isUnread={isUnread}
    >
      <GroupPicture actors={actorsOf(group)} />
    </NotificationLinkRow>
  );
}

interface PreviewedMessage {
  text: string;
  deletedAt?: string | null;
  stamp: { name: string } | null;
}

function messagePreview({ text, deletedAt, stamp }: PreviewedMessage, t: Translate): string | undefined {
  return deletedAt ? t("message.deleted") : plainText(text) || stamp?.name;
}

/** The pictures of the two people who acted last, in a square of the same size for every row. */
function GroupPicture({ actors: [first, second] }: { actors: readonly Actor[] }) {
  if (!first) return <Icon name="bell" className="mx-1 size-9 shrink-0 text-quiet" />;
  return (
    <span className="relative flex size-11 shrink-0 items-start justify-center">
      {second && (
        <span className="absolute bottom-0 right-0">
          <Avatar user={second} size="small" />
        </span>
      )}
      <span className={second ? "absolute left-0 top-0 z-10 rounded-full border-2 border-paper" : ""}>
        <Avatar user={first} size={second ? "small" : "middle"} />
      </span>
    </span>
  );
}

const MAX_EMOJIS = 5;

/** Who did what, with the emojis of reactions. */
function NotificationText({ group }: { group: NotificationGroup }) {
  const { t } = useTranslation();
  const emojis = emojisOf(group);
  const { account, community, stampPack, conversation } = group.newest;
  const parts = {
    name: namesText(actorsOf(group), t),
    account: account?.name ?? t("notification.noAccount"),
    community: community?.name ?? t("notification.noCommunity"),
    pack: stampPack?.name,
    conversation: conversation?.name || t("notification.noGroupName"),
    emoji: (
      <span className="text-lg leading-none">
        {emojis.slice(0, MAX_EMOJIS).map((emoji) => (
          <ReactionPicture key={emoji} emoji={emoji} />
        ))}
        {emojis.length > MAX_EMOJIS && "…"}
      </span>
    ),
  };
  return (
    <Sentence
      text={t(textKey(group, emojis.length > 0), { count: group.notifications.length })}
      parts={parts}
    />
  );
}

function textKey({ newest, notifications }: NotificationGroup, hasEmoji: boolean): TextKey {
  const { kind, actor, post, stampPack, conversation } = newest;
  if (stampPack) return actor ? "notification.packGiven" : "notification.packEarned";
  if (kind === "ADDED_TO_COMMUNITY") return actor ? "notification.added" : "notification.joined";
  if (kind === "DIRECT_MESSAGE" && conversation?.isGroup) return "notification.groupMessage";
  if (notifications.length > 1 && (kind === "REPLY" || kind === "QUOTE")) return `notification.${kind}.many`;
  if (kind !== "REACTION") return `notification.${kind}`;
  if (post) return hasEmoji ? "notification.postEmojiReaction" : "notification.postReaction";
  return hasEmoji ? "notification.emojiReaction" : "notification.REACTION";
}

/** Returns the names of at most two people, and how many others there are. */
function namesText([first, second, ...others]: readonly Actor[], t: Translate): string {
  if (!first) return "";
  if (!second) return t("notification.names.one", { first: first.name });
  const names = { first: first.name, second: second.name };
  if (others.length === 0) return t("notification.names.two", names);
  return t("notification.names.more", { ...names, count: others.length });
}

/** Several replies open the post with all of them; otherwise the newest notification opens what it is about. */
function groupRoute({ newest, notifications }: NotificationGroup): Route {
  const { kind, subjectId } = newest;
  if (kind === "REPLY" && subjectId && notifications.length > 1) return { name: "post", id: subjectId };
  return notificationRoute(newest);
}

function notificationRoute(notification: Notification): Route {
  const { kind, message, post, actor, publication, community, conversation } = notification;
  if (community) return { name: "community", id: community.id, tab: "members", person: null };
  if (publication) return { name: "publishing", view: null, day: null, post: publication.scheduledPostId };
  if (isAboutAccount(kind)) return { name: "publishing", view: null, day: null, post: null };
  // A conversation opens at its first unread message, and a request with its buttons.
  if (conversation) return { name: "topic", id: conversation.topic.id, at: null };
  if (message) return { name: "topic", id: message.topicId, at: message.timestamp };
  if (post) return { name: "post", id: post.id };
  return actor ? { name: "person", id: actor.id } : { name: "home" };
}

interface NotificationLinkRowProps {
  to: Route;
  at: string;
  title: ReactNode;
  preview?: string | undefined;
  isUnread?: boolean;
  children: ReactNode;
}

function NotificationLinkRow({ to, at, title, preview, isUnread, children }: NotificationLinkRowProps) {
  const { t, language } = useTranslation();
  const ground = isUnread ? "border-l-4 border-l-accent bg-glow" : "border-l-4 border-l-transparent";
  return (
    <a
      href={hrefOf(to)}
      data-unread={isUnread || undefined}
      className={`flex gap-3 border-b border-line px-2 py-3 hover:bg-hover ${ground}`}
    >
      {children}
      <span className="min-w-0 grow">
        <span className={`block ${isUnread ? "font-semibold" : ""}`}>
          {isUnread && <span className="sr-only">{t("notification.unread")}: </span>}
          {title}
        </span>
        {preview && <span className="line-clamp-2 text-sm text-quiet">{preview}</span>}
      </span>
      <time className="shrink-0 text-sm text-quiet" dateTime={dateOf(at).toISOString()}>
        {relativeTime(language, dateOf(at), new Date())}
      </time>
    </a>
  );
}

export function ReactionsPage() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const feed = useFeed(async (latest, inclusive) => {
    const { page } = await request(direct, ReactionsReceived, { latest, inclusive });
    return { ...page, items: page.items.map((item) => ({ ...item, id: item.timestamp })) };
  });
  const { items } = useValue(feed.state).window;
  useWatchedMessages(items.map(({ message }) => message).reverse());
  return (
    <FeedList
      feed={feed}
      head={<NotificationTabs />}
      empty={<EmptyState icon="smile" title={t("reactions.none")} hint={t("reactions.noneHint")} />}
    >
      {(reaction) => <ReceivedReactionRow key={reaction.id} reaction={reaction} />}
    </FeedList>
  );
}

function ReceivedReactionRow({ reaction }: { reaction: ReceivedReaction }) {
  const { t } = useTranslation();
  const { timestamp, emoji, user } = reaction;
  const message = useCurrent(reaction.message);
  return (
    <NotificationLinkRow
      to={{ name: "topic", id: message.topicId, at: message.timestamp }}
      at={timestamp}
      title={
        <>
          <span className="mr-1 text-lg">
            <ReactionPicture emoji={emoji} />
          </span>{" "}
          {t("reaction.by", { name: user.name })}
        </>
      }
      preview={messagePreview(message, t)}
    >
      <Avatar user={user} />
    </NotificationLinkRow>
  );
}

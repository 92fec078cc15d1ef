/** The pages with the viewer's notifications and with reactions to the viewer's messages. */
import type { ReactNode } from "react";
import { useEffect } from "react";
import { request, useApi } from "../api/api";
import { hrefOf, type Place } from "../app/router";
import { dateOf, relativeTime } from "../i18n/times";
import { Avatar } from "../ui/avatar";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { useValue } from "../ui/value";
import { FeedList } from "./feed-list";
import { FeedTabs } from "./feed-tabs";
import { MarkNotificationsRead, type Notification, Notifications, ReactionsReceived } from "./operations";
import { newestNotification, unreadCount } from "./unread";
import { useFeed } from "./use-feed";

function Tabs() {
  return <FeedTabs title="notifications" names={["notifications", "reactions"]} />;
}

export function NotificationsPage() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const feed = useFeed<Notification>(
    async (latest, inclusive) => (await request(direct, Notifications, { latest, inclusive })).page,
  );
  const newNotification = useValue(newestNotification);
  const newestTimestamp = useValue(feed.state).window.items.at(-1)?.timestamp;
  useEffect(() => {
    if (newNotification) feed.put(newNotification);
  }, [newNotification, feed]);
  useEffect(() => {
    if (!newestTimestamp) return;
    request(direct, MarkNotificationsRead, { timestamp: newestTimestamp }).then(
      ({ markNotificationsRead: unreadLeft }) => unreadCount.set(unreadLeft),
      () => {}, // The next request moves the read mark.
    );
  }, [direct, newestTimestamp]);
  return (
    <FeedList
      feed={feed}
      head={<Tabs />}
      empty={<EmptyState icon="bell" title={t("notifications.none")} hint={t("notifications.noneHint")} />}
    >
      {(item) => <NotificationRow key={item.id} item={item} />}
    </FeedList>
  );
}

function NotificationRow({ item }: { item: Notification }) {
  const { t } = useTranslation();
  const { actor, message, post, kind, warning } = item;
  const text = t(`notification.${kind}`, { name: actor?.name ?? "" });
  return (
    <LinkRow
      to={notificationPlace(item)}
      at={item.timestamp}
      title={text}
      preview={warning ?? message?.text ?? post?.text}
    >
      {actor ? <Avatar user={actor} /> : <Icon name="bell" className="size-9 text-quiet" />}
    </LinkRow>
  );
}

function notificationPlace({ message, actor, publication }: Notification): Place {
  if (publication) return { name: "publishing", view: null, day: null, post: publication.scheduledPostId };
  if (message) return { name: "topic", id: message.topicId, at: message.timestamp };
  return actor ? { name: "person", id: actor.id } : { name: "home" };
}

interface LinkRowProps {
  to: Place;
  at: string;
  title: ReactNode;
  preview?: string | undefined;
  children: ReactNode;
}

function LinkRow({ to, at, title, preview, children }: LinkRowProps) {
  const { language } = useTranslation();
  return (
    <a href={hrefOf(to)} className="flex gap-3 border-b border-line px-2 py-3 hover:bg-hover">
      {children}
      <span className="min-w-0 grow">
        <span className="block">{title}</span>
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
  return (
    <FeedList
      feed={feed}
      head={<Tabs />}
      empty={<EmptyState icon="smile" title={t("reactions.none")} hint={t("reactions.noneHint")} />}
    >
      {({ id, timestamp, emoji, user, message }) => (
        <LinkRow
          key={id}
          to={{ name: "topic", id: message.topicId, at: message.timestamp }}
          at={timestamp}
          title={
            <>
              <span className="mr-1 text-lg">{emoji}</span> {t("reaction.by", { name: user.name })}
            </>
          }
          preview={message.text || message.stamp?.name}
        >
          <Avatar user={user} />
        </LinkRow>
      )}
    </FeedList>
  );
}

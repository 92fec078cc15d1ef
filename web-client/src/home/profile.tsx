/** The profile of a user: the name, the buttons to follow, block, mute and report, and the posts. */

import { useState } from "react";
import { useMutation, useQuery } from "urql";
import { request, useApi } from "../api/api";
import type { ResultOf } from "../api/graphql";
import { navigate } from "../app/router";
import { StartConversation } from "../chat/conversations/operations";
import { Banner } from "../files/banner";
import { AvatarActions, BannerActions } from "../files/profile-pictures";
import { MuteButton } from "../mutes/mute-button";
import { PresenceProvider } from "../presence/presence";
import { ReportDialog } from "../reports/report-dialog";
import { useViewer } from "../session/viewer";
import { withoutItem } from "../timeline/window";
import { Avatar } from "../ui/avatar";
import { Button, IconButton } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { PageTitle } from "../ui/page-title";
import { useTranslation } from "../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../ui/states";
import { notifyFailure } from "../ui/toasts";
import { Bio } from "./bio";
import { EditProfileButton } from "./edit-profile";
import { FeedList } from "./feed-list";
import { Block, Follow, type Post, PostsOf, Profile, Unblock, Unfollow } from "./operations";
import { PostCard } from "./post-card";
import { withChangedPosts } from "./post-changes";
import { useFeed } from "./use-feed";

type Person = NonNullable<ResultOf<typeof Profile>["user"]>;

export function ProfilePage({ id }: { id: string }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [{ data, error }, reload] = useQuery({
    query: Profile,
    variables: { id },
    requestPolicy: "cache-and-network",
  });
  const feed = useFeed<Post>(
    async (latest, inclusive) => (await request(direct, PostsOf, { authorId: id, latest, inclusive })).page,
  );
  if (error && !data?.user) return <ErrorState error={error} retry={reload} />;
  const user = data?.user;
  if (!user) return <LoadingState />;
  return (
    <FeedList
      feed={feed}
      head={<ProfileHeader user={user} onChanged={() => feed.open(null)} />}
      empty={
        <EmptyState
          icon={user.blocked ? "close" : "edit"}
          title={t(user.blocked ? "profile.blockedTitle" : "profile.noPosts")}
          hint={t(user.blocked ? "profile.blockedHint" : "profile.noPostsHint", { name: user.name })}
        />
      }
    >
      {(post) => (
        <PostCard
          key={post.id}
          post={post}
          onChanged={(id, change) => feed.apply((window) => withChangedPosts(window, id, change))}
          onDeleted={(deletedId) => feed.apply((window) => withoutItem(window, deletedId))}
        />
      )}
    </FeedList>
  );
}

function ProfileHeader({ user, onChanged }: { user: Person; onChanged: () => void }) {
  const { t } = useTranslation();
  const viewer = useViewer();
  return (
    <header className="flex flex-wrap items-center gap-4 border-b border-line py-6">
      {user.bannerUrl && <Banner path={user.bannerUrl} />}
      <PresenceProvider communityId={null}>
        <Avatar user={user} size="large" />
      </PresenceProvider>
      <div className="min-w-40 grow">
        <PageTitle name={user.name} />
        <h1 className="text-xl font-semibold">{user.name}</h1>
        <p className="text-quiet">@{user.handle}</p>
        <p className="mt-1 flex gap-4 text-sm tabular-nums">
          <span>{t("profile.followers", { count: user.followerCount })}</span>
          <span>{t("profile.following", { count: user.followingCount })}</span>
        </p>
      </div>
      {user.id === viewer.id ? (
        <div className="flex flex-wrap gap-2">
          <EditProfileButton user={user} />
          <AvatarActions hasAvatar={user.avatarUrl !== null} />
          <BannerActions hasBanner={user.bannerUrl !== null} />
        </div>
      ) : (
        <ProfileActions user={user} onChanged={onChanged} />
      )}
      {user.bio !== null && <Bio text={user.bio} />}
    </header>
  );
}

/** Opens the conversation with a person. */
function MessageButton({ user: { id, name } }: { user: Person }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  async function open() {
    try {
      const input = { userIds: [id] };
      const { startConversation } = await request(cached, StartConversation, { input });
      navigate({ name: "topic", id: startConversation.topic.id, at: null });
    } catch (error) {
      notifyFailure(error);
    }
  }
  return <IconButton icon="chat" label={t("conversation.with", { name })} onClick={open} />;
}

function ProfileActions({ user, onChanged }: { user: Person; onChanged: () => void }) {
  const { t } = useTranslation();
  const [isConfirming, setIsConfirming] = useState(false);
  const [isReporting, setIsReporting] = useState(false);
  const [, follow] = useMutation(Follow);
  const [, unfollow] = useMutation(Unfollow);
  const [, block] = useMutation(Block);
  const [, unblock] = useMutation(Unblock);
  const { id } = user;
  const handleResult = ({ error }: { error?: unknown }) => (error ? notifyFailure(error) : onChanged());
  return (
    <div className="flex gap-2">
      {!user.blocked && (
        <Button
          kind={user.following ? "other" : "main"}
          aria-pressed={user.following}
          onClick={() =>
            (user.following ? unfollow({ id }) : follow({ id })).then(
              ({ error }) => error && notifyFailure(error),
            )
          }
        >
          {t(user.following ? "unfollow" : "follow")}
        </Button>
      )}
      <Button onClick={() => (user.blocked ? unblock({ id }).then(handleResult) : setIsConfirming(true))}>
        {t(user.blocked ? "unblock" : "block")}
      </Button>
      {!user.blocked && <MessageButton user={user} />}
      <MuteButton subject="USER" id={id} name={user.name} isMuted={user.muted} />
      <IconButton
        icon="flag"
        label={t("report.title.USER", { name: user.name })}
        onClick={() => setIsReporting(true)}
      />
      {isReporting && (
        <ReportDialog subject="USER" id={id} name={user.name} onClose={() => setIsReporting(false)} />
      )}
      {isConfirming && (
        <ConfirmDialog
          title={t("profile.block", { name: user.name })}
          text={t("profile.blockAsk")}
          action={t("block")}
          onDone={(isConfirmed) => {
            setIsConfirming(false);
            if (isConfirmed) block({ id }).then(handleResult);
          }}
        />
      )}
    </div>
  );
}

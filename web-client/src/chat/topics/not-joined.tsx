/** The screen in place of a topic, for a viewer who has not joined its community or was removed from it. */
import { useEffect, useState } from "react";
import { request, useApi } from "../../api/api";
import { errorCode, restrictedUntil } from "../../api/failure";
import { hrefOf } from "../../app/router";
import { newestNotification } from "../../home/unread";
import { dateAndTime } from "../../i18n/times";
import type { CommunityVisibility } from "../../moderation/operations";
import { Button } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import { EmptyState } from "../../ui/states";
import { notifyFailure } from "../../ui/toasts";
import { useValue } from "../../ui/value";
import { JoinCommunity } from "../operations";
import { JoinRequestDialog, type OwnBan } from "../sidebar/request-dialog";

interface Props {
  community: { id: string; name: string; visibility: CommunityVisibility };
  title: "topic.notJoined" | "topic.removed";
  onJoined: () => void;
}

export function NotJoinedNotice({ community, title, onJoined }: Props) {
  const { id, name, visibility } = community;
  const { t } = useTranslation();
  const { cached } = useApi();
  const [ban, setBan] = useState<OwnBan | null>(null);
  const [isAsking, setIsAsking] = useState(false);
  const isListed = visibility === "LISTED";
  useAddition(id, onJoined);
  async function join() {
    try {
      await request(cached, JoinCommunity, { id });
      onJoined();
    } catch (error) {
      if (errorCode(error) === "FORBIDDEN") setBan({ until: restrictedUntil(error) });
      else notifyFailure(error);
    }
  }
  if (ban) return <BannedNotice name={name} until={ban.until} />;
  return (
    <div className="h-full overflow-y-auto" data-testid={title}>
      {title === "topic.removed" && <h1 className="sr-only">{name}</h1>}
      <EmptyState icon="door" title={t(title, { name })} hint={t(`${title}Hint`)}>
        {visibility !== "PRIVATE" && (
          <Button kind="main" onClick={isListed ? () => setIsAsking(true) : join}>
            {t(isListed ? "browse.ask" : "join")}
          </Button>
        )}
        {title === "topic.removed" && <BackLink />}
      </EmptyState>
      {isAsking && (
        <JoinRequestDialog community={community} onClose={() => setIsAsking(false)} onBanned={setBan} />
      )}
    </div>
  );
}

/** Calls `onAdded` when a moderator makes the viewer a member of the community. */
function useAddition(communityId: string, onAdded: () => void): void {
  const notification = useValue(newestNotification);
  const [earlier] = useState(notification);
  useEffect(() => {
    if (notification !== earlier && notification?.community?.id === communityId) onAdded();
  }, [notification, earlier, communityId, onAdded]);
}

function BannedNotice({ name, until }: OwnBan & { name: string }) {
  const { t, language } = useTranslation();
  const hint = until
    ? t("topic.bannedUntil", { until: dateAndTime(language, new Date(until)) })
    : t("topic.bannedHint");
  return (
    <div role="alert" className="h-full overflow-y-auto">
      <h1 className="sr-only">{name}</h1>
      <EmptyState icon="ban" title={t("topic.banned", { name })} hint={hint}>
        <BackLink />
      </EmptyState>
    </div>
  );
}

function BackLink() {
  const { t } = useTranslation();
  return (
    <a
      href={hrefOf({ name: "chat" })}
      className="inline-flex min-h-9 items-center rounded-full border border-line px-4 hover:bg-hover"
    >
      {t("topic.toChat")}
    </a>
  );
}

/** What a person sees instead of a topic whose community they have not joined, or were removed from. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { errorCode, restrictedUntil } from "../api/failure";
import { hrefOf } from "../app/router";
import { dateAndTime } from "../i18n/times";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { notifyFailure } from "../ui/toasts";
import { JoinCommunity } from "./operations";

interface Props {
  community: { id: string; name: string };
  title: "topic.notJoined" | "topic.removed";
  onJoined: () => void;
}

export function NotJoined({ community: { id, name }, title, onJoined }: Props) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [ban, setBan] = useState<Ban | null>(null);
  async function join() {
    try {
      await request(cached, JoinCommunity, { id });
      onJoined();
    } catch (error) {
      if (errorCode(error) === "FORBIDDEN") setBan({ until: restrictedUntil(error) });
      else notifyFailure(error);
    }
  }
  if (ban) return <Banned name={name} until={ban.until} />;
  return (
    <div className="h-full overflow-y-auto" data-testid={title}>
      {title === "topic.removed" && <h1 className="sr-only">{name}</h1>}
      <EmptyState icon="door" title={t(title, { name })} hint={t(`${title}Hint`)}>
        <Button kind="main" onClick={join}>
          {t("join")}
        </Button>
        {title === "topic.removed" && <BackLink />}
      </EmptyState>
    </div>
  );
}

interface Ban {
  /** When the ban ends; null if it lasts until a moderator ends it. */
  until: string | null;
}

function Banned({ name, until }: Ban & { name: string }) {
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

/** One target of a post: state, error and attempts, and the button that retries a publication. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import type { TextKey } from "../../i18n/texts";
import { Button } from "../../ui/button";
import { Icon, type IconName } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { notifyFailure } from "../../ui/toasts";
import { instantText, roundedDuration } from "../local-times";
import { type Publication, type PublicationTarget, RetryPublication } from "../operations";
import { PostStateBadge } from "./state-badge";
import { targetText } from "./targets";
import { UnknownOutcome } from "./unknown-outcome";

const ICONS: Record<PublicationTarget["__typename"], IconName> = {
  HomeFeedTarget: "home",
  TopicTarget: "chat",
  AccountTarget: "link",
};

/** Shorter delays are not shown. */
const SHOWN_LATENESS_MIN_MS = 60_000;

/**
 * Labels of the attempts' outcomes. An outcome that a newer server adds has no label: only time and detail are shown.
 */
const OUTCOMES: Record<string, TextKey> = {
  PUBLISHED: "publishing.outcome.PUBLISHED",
  FAILED: "publishing.outcome.FAILED",
  UNKNOWN: "publishing.outcome.UNKNOWN",
  NO_EFFECT: "publishing.outcome.NO_EFFECT",
  UPLOAD_FAILED: "publishing.outcome.UPLOAD_FAILED",
  NEEDS_ATTENTION: "publishing.outcome.NEEDS_ATTENTION",
};

interface Props {
  publication: Publication;
  zone: string;
  refresh: () => void;
}

export function PublicationRow({ publication, zone, refresh }: Props) {
  const { t, language } = useTranslation();
  const { target, state, error, latenessMs, publishedAt, url, mediaState } = publication;
  const showsUpload = mediaState !== "NONE" && state === "SCHEDULED";
  return (
    <li data-publication={state} className="rounded-card border border-line p-3">
      <div className="flex items-center gap-2">
        <Icon name={ICONS[target.__typename]} className="size-4 text-quiet" />
        <span className="min-w-0 grow truncate font-medium">
          {targetText(target, t)}
          {target.__typename === "AccountTarget" && (
            <span className="ml-2 text-sm font-normal text-quiet">
              {t(`publishing.network.${target.account.network}`)}
            </span>
          )}
        </span>
        <PostStateBadge state={state} />
      </div>
      {publishedAt && (
        <p className="mt-1 text-sm text-quiet">
          {instantText(language, zone, new Date(publishedAt))}
          {latenessMs !== null &&
            latenessMs >= SHOWN_LATENESS_MIN_MS &&
            ` · ${t("publishing.late", { duration: roundedDuration(latenessMs / 1000, t) })}`}
        </p>
      )}
      {url && (
        <a href={url} target="_blank" rel="noreferrer noopener" className="text-sm text-accent underline">
          {t("publishing.look")}
        </a>
      )}
      {showsUpload && <p className="mt-1 text-sm text-quiet">{t(`publishing.upload.${mediaState}`)}</p>}
      {error && (
        <p className={`mt-1 text-sm ${state === "FAILED" ? "text-bad" : "text-wait"}`}>{error.message}</p>
      )}
      {(state === "NEEDS_ATTENTION" || state === "FAILED") && (
        <RetryButton publication={publication} refresh={refresh} />
      )}
      {state === "UNKNOWN" && <UnknownOutcome publication={publication} zone={zone} refresh={refresh} />}
      <PublicationAttempts publication={publication} zone={zone} />
    </li>
  );
}

function PublicationAttempts({ publication: { attempts }, zone }: Omit<Props, "refresh">) {
  const { t, language } = useTranslation();
  if (attempts.length === 0) return null;
  return (
    <details className="mt-1 text-sm">
      <summary className="text-quiet">{t("publishing.attempts", { count: attempts.length })}</summary>
      <ol className="mt-1 flex flex-col gap-1 pl-4">
        {attempts.map(({ at, outcome, detail }) => (
          <li key={`${at} ${outcome}`}>
            {OUTCOMES[outcome] && <span className="font-semibold">{t(OUTCOMES[outcome])} </span>}
            <span className="text-quiet">{instantText(language, zone, new Date(at))}</span>
            {detail && <span className="block whitespace-pre-wrap text-quiet">{detail}</span>}
          </li>
        ))}
      </ol>
    </details>
  );
}

/** The button by which a person has a publication tried again, and why an account's credentials are needed. */
function RetryButton({ publication: { id, state }, refresh }: Omit<Props, "zone">) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [isSaving, setIsSaving] = useState(false);
  async function retry() {
    setIsSaving(true);
    await request(direct, RetryPublication, { id, key: crypto.randomUUID() }).catch(notifyFailure);
    setIsSaving(false);
    refresh();
  }
  return (
    <div className="mt-2 flex flex-col items-start gap-2">
      {state === "NEEDS_ATTENTION" && <p className="text-sm">{t("publishing.attentionHint")}</p>}
      <Button disabled={isSaving} onClick={retry}>
        {t("publishing.retry")}
      </Button>
    </div>
  );
}

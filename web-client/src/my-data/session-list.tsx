/** The browsers in which the viewer is signed in. Each of them can be signed out from here. */
import { useCallback, useState } from "react";
import { request, useApi } from "../api/api";
import { errorCode } from "../api/failure";
import type { Session } from "../session/browsers/session-parts";
import { sessionTexts } from "../session/browsers/session-texts";
import { usePagedList } from "../timeline/use-paged-list";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { notify, notifyFailure } from "../ui/toasts";
import { EndOtherSessions, EndSession, MySessions } from "./operations";

const keyOf = ({ id }: Session) => id;

export function SessionList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [isConfirming, setIsConfirming] = useState(false);
  // The API lists all sessions at once: a user has a few.
  const loadAll = useCallback(
    async (after: Session | null) => (after ? [] : (await request(direct, MySessions, {})).mySessions),
    [direct],
  );
  const sessions = usePagedList(loadAll, keyOf);
  const others = sessions.items?.filter(({ current }) => !current).length ?? 0;

  async function end({ id }: Session) {
    try {
      await request(direct, EndSession, { id });
      notify(t("sessions.ended", { count: 1 }));
    } catch (error) {
      // A session that is not found has ended before.
      if (errorCode(error) !== "NOT_FOUND") return notifyFailure(error);
    }
    sessions.change((session) => (session.id === id ? null : session));
  }
  async function endOthers(isConfirmed: boolean) {
    setIsConfirming(false);
    if (!isConfirmed) return;
    try {
      const { endOtherSessions: count } = await request(direct, EndOtherSessions, {});
      notify(t("sessions.ended", { count }));
      sessions.change((session) => (session.current ? session : null));
    } catch (error) {
      notifyFailure(error);
    }
  }

  return (
    <section aria-labelledby="sessions">
      <div className="flex flex-wrap items-center justify-between gap-2 border-b border-line pb-3 sm:flex-nowrap">
        <div className="min-w-0">
          <h2 id="sessions" className="text-lg font-semibold">
            {t("sessions.title")}
          </h2>
          <p className="text-sm text-quiet">{t("sessions.hint")}</p>
        </div>
        {others > 0 && (
          <Button className="shrink-0" onClick={() => setIsConfirming(true)}>
            {t("sessions.endOthers")}
          </Button>
        )}
      </div>
      <PagedRows
        list={sessions}
        label={t("sessions.title")}
        empty={<EmptyState icon="door" title={t("sessions.none")} hint={t("sessions.noneHint")} />}
      >
        {(session) => <SessionRow key={session.id} session={session} onEnd={() => end(session)} />}
      </PagedRows>
      {isConfirming && (
        <ConfirmDialog
          title={t("sessions.endOthers")}
          text={t("sessions.endOthersAsk")}
          action={t("signOut")}
          onDone={endOthers}
        />
      )}
    </section>
  );
}

function SessionRow({ session, onEnd }: { session: Session; onEnd: () => void }) {
  const translation = useTranslation();
  const { t } = translation;
  const { name, lastUse, signIn } = sessionTexts(translation, session);
  return (
    <li
      data-session={session.id}
      className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line py-3 sm:flex-nowrap"
    >
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="font-semibold" title={session.userAgent ?? undefined}>
            {name}
          </span>
          {session.current ? (
            <Badge tone="good">{t("sessions.current")}</Badge>
          ) : (
            <span className="text-sm text-quiet">{lastUse}</span>
          )}
        </p>
        <p className="text-sm text-quiet">{signIn}</p>
      </div>
      {!session.current && (
        <Button className="shrink-0" onClick={onEnd} aria-label={t("sessions.endNamed", { name })}>
          {t("signOut")}
        </Button>
      )}
    </li>
  );
}

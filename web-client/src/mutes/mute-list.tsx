/** The users, topics, threads, communities and conversations of posts that the viewer has muted. */
import { useCallback } from "react";
import { useClient } from "urql";
import { request, useApi } from "../api/api";
import { hrefOf } from "../app/router";
import { timeOrDate } from "../i18n/times";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { Button } from "../ui/button";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { plainText } from "../ui/text/formatting";
import { notify, notifyFailure } from "../ui/toasts";
import { useMutedThread } from "./muted-thread";
import { type Mute, MyMutes, UNMUTE } from "./operations";

const keyOf = ({ id }: Mute) => id;

export function MuteList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const cached = useClient();
  const loadPage = useCallback(
    async (after: Mute | null) => {
      const variables = { of: null, after: after?.id ?? null, limit: PAGE_SIZE };
      return (await request(direct, MyMutes, variables)).myMutes;
    },
    [direct],
  );
  const mutes = usePagedList(loadPage, keyOf);

  async function end(mute: Mute, name: string) {
    try {
      await request(cached, UNMUTE[mute.subject], { id: mute.subjectId });
      mutes.change((each) => (each.id === mute.id ? null : each));
      notify(t("mutes.unmuted", { name }));
    } catch (error) {
      notifyFailure(error);
    }
  }
  return (
    <section aria-labelledby="mutes" className="mt-10">
      <div className="border-b border-line pb-3">
        <h2 id="mutes" className="text-lg font-semibold">
          {t("mutes.title")}
        </h2>
        <p className="text-sm text-quiet">{t("mutes.hint")}</p>
      </div>
      <PagedRows
        list={mutes}
        label={t("mutes.title")}
        empty={<EmptyState icon="bell" title={t("mutes.none")} hint={t("mutes.noneHint")} />}
      >
        {(mute) => <MuteRow key={mute.id} mute={mute} onEnd={(name) => end(mute, name)} />}
      </PagedRows>
    </section>
  );
}

function MuteRow({ mute, onEnd }: { mute: Mute; onEnd: (name: string) => void }) {
  const { t, language } = useTranslation();
  const { subject, user, topic, community, post, until } = mute;
  const thread = useMutedThread(topic?.parentMessageId ?? null);
  const shown = user?.name ?? thread?.name ?? topic?.title ?? community?.name;
  const name = shown ?? (post ? textOf(post) : t("mutes.notVisible"));
  const href = thread ? thread.href : hrefOfSubject(mute);
  return (
    <li data-mute={mute.id} className="flex items-center gap-4 border-b border-line py-3">
      <div className="min-w-0 grow">
        <p className="truncate font-semibold">{href ? <a href={href}>{name}</a> : name}</p>
        <p className="text-sm text-quiet">
          {t(thread ? "mutes.subject.THREAD" : `mutes.subject.${subject}`)}
          {thread?.place && ` · ${thread.place}`}
          {until && ` · ${t("mutes.until", { until: timeOrDate(language, new Date(until), new Date()) })}`}
        </p>
      </div>
      <Button className="shrink-0" aria-label={t("mutes.unmute", { name })} onClick={() => onEnd(name)}>
        {t("mutes.end")}
      </Button>
    </li>
  );
}

/** The text of a post; the author's name for a post without text. */
function textOf({ text, author }: NonNullable<Mute["post"]>): string {
  return plainText(text) || author.name;
}

function hrefOfSubject({ user, topic, community, post }: Mute): string | null {
  if (post) return hrefOf({ name: "post", id: post.id });
  if (user) return hrefOf({ name: "person", id: user.id });
  if (topic) return hrefOf({ name: "topic", id: topic.id, at: null });
  return community && hrefOf({ name: "community", id: community.id, tab: "members", person: null });
}

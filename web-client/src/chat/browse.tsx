/** The communities that one could join. */
import { useMutation, useQuery } from "urql";
import { addressOf, go } from "../app/router";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { useWords } from "../ui/preferences";
import { Empty, Failed, Loading } from "../ui/states";
import { tellFailure } from "../ui/toasts";
import { JoinCommunity, OtherCommunities } from "./operations";

export function Browse() {
  const { t } = useWords();
  const [{ data, error }, again] = useQuery({
    query: OtherCommunities,
    variables: { after: null },
    requestPolicy: "cache-and-network",
  });
  const [, join] = useMutation(JoinCommunity);
  return (
    <section aria-labelledby="browse" className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto max-w-2xl p-4 sm:p-6">
        <div className="mb-4 flex items-center gap-2">
          <a
            href={addressOf({ name: "chat" })}
            aria-label={t("back")}
            className="rounded-full p-2 text-quiet md:hidden"
          >
            <Icon name="back" />
          </a>
          <h1 id="browse" className="text-xl font-semibold">
            {t("browse")}
          </h1>
        </div>
        {error && !data && <Failed error={error} again={again} />}
        {!error && !data && <Loading />}
        {data?.communities.length === 0 && (
          <Empty icon="check" title={t("browse.none")} hint={t("browse.noneHint")} />
        )}
        <ul className="flex flex-col gap-2">
          {data?.communities.map((community) => (
            <li
              key={community.id}
              className="flex items-center gap-4 rounded-card border border-line bg-raised p-4"
            >
              <div className="min-w-0 grow">
                <h2 className="font-semibold">{community.name}</h2>
                <p className="text-sm text-quiet">{community.description}</p>
                <p className="text-sm text-quiet">{t("members", { count: community.memberCount })}</p>
              </div>
              <Button
                kind="main"
                onClick={() =>
                  join({ id: community.id }).then(({ error }) =>
                    error ? tellFailure(error) : go({ name: "chat" }),
                  )
                }
              >
                {t("join")}
              </Button>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

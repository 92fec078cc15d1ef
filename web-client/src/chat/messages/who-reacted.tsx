/** The users who reacted to a message, grouped by emoji. */
import { useQuery } from "urql";
import type { ResultOf } from "../../api/graphql";
import { hrefOf } from "../../app/router";
import { ReactionPicture } from "../../stamps/reaction-picture";
import { Avatar } from "../../ui/avatar";
import { useTranslation } from "../../ui/preferences";
import { ErrorState, LoadingState } from "../../ui/states";
import { WhoReacted } from "../operations";

export function WhoReactedList({ id }: { id: string }) {
  const [{ data, error }] = useQuery({ query: WhoReacted, variables: { id }, requestPolicy: "network-only" });
  if (error) return <ErrorState error={error} />;
  if (!data) return <LoadingState rows={3} />;
  return <ReactionUsers reactions={data.message?.reactions ?? []} />;
}

type ReactionWithUsers = NonNullable<ResultOf<typeof WhoReacted>["message"]>["reactions"][number];

export function ReactionUsers({ reactions }: { reactions: readonly ReactionWithUsers[] }) {
  const { t } = useTranslation();
  return (
    <ul className="thin-scroll flex max-h-[60vh] flex-col gap-4 overflow-y-auto">
      {reactions.map(({ emoji, count, users }) => (
        <li key={emoji} className="flex gap-4">
          <span className="w-12 shrink-0 break-all text-xl">
            <ReactionPicture emoji={emoji} /> <span className="text-sm text-quiet">{count}</span>
          </span>
          <ul className="flex flex-col gap-2">
            {users.map((user) => (
              <li key={user.id}>
                <a
                  href={hrefOf({ name: "person", id: user.id })}
                  className="flex items-center gap-2 hover:underline"
                >
                  <Avatar user={user} size="small" />
                  {user.name} <span className="text-sm text-quiet">@{user.handle}</span>
                </a>
              </li>
            ))}
            {count > users.length && (
              <li className="text-quiet">{t("andMore", { count: count - users.length })}</li>
            )}
          </ul>
        </li>
      ))}
    </ul>
  );
}

/** The users who reacted to a message, grouped by emoji. */
import { useQuery } from "urql";
import { hrefOf } from "../app/router";
import { Avatar } from "../ui/avatar";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { WhoReacted } from "./operations";

export function WhoReactedList({ id }: { id: string }) {
  const { t } = useTranslation();
  const [{ data, error }] = useQuery({ query: WhoReacted, variables: { id }, requestPolicy: "network-only" });
  if (error) return <ErrorState error={error} />;
  if (!data) return <LoadingState rows={3} />;
  return (
    <ul className="thin-scroll flex max-h-[60vh] flex-col gap-4 overflow-y-auto">
      {data.message?.reactions.map(({ emoji, count, users }) => (
        <li key={emoji} className="flex gap-4">
          <span className="w-12 shrink-0 text-xl">
            {emoji} <span className="text-sm text-quiet">{count}</span>
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

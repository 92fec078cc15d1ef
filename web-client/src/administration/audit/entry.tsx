/** One entry of the audit log: a sentence, its reason, and the details of the request. */
import { type ReactNode, useMemo } from "react";
import { useQuery } from "urql";
import { hrefOf } from "../../app/router";
import { dateAndTime, timeOfDay } from "../../i18n/times";
import { Avatar } from "../../ui/avatar";
import { useTranslation } from "../../ui/preferences";
import { Sentence } from "../../ui/text/sentence";
import { type AuditEntry, CommunityName } from "../operations";
import { detailName, detailOf, detailValue, roleNames, sentenceOf } from "./sentence";

/** Details that are shown by the sentence, or on the lines below it, and are not repeated among the details. */
const SHOWN_DETAILS = ["reason", "before", "after"];

export function AuditEntryRow({ entry }: { entry: AuditEntry }) {
  const { t, language } = useTranslation();
  const at = new Date(entry.at);
  const before = detailOf(entry, "before");
  const after = detailOf(entry, "after");
  const reason = detailOf(entry, "reason");
  return (
    <article data-audit={entry.action} className="flex gap-3 py-2.5">
      <Avatar user={entry.actor ?? { id: entry.actorId, name: entry.actorId, handle: "" }} />
      <div className="min-w-0 grow">
        <p>
          <EntrySentence entry={entry} />{" "}
          <time
            dateTime={entry.at}
            title={dateAndTime(language, at)}
            className="whitespace-nowrap text-xs text-quiet"
          >
            {timeOfDay(language, at)}
          </time>
        </p>
        {before && after && (
          <p className="text-sm text-quiet">
            {entry.action === "USER_ROLES_SET"
              ? `${roleNames(before, t)} → ${roleNames(after, t)}`
              : `${before} → ${after}`}
          </p>
        )}
        {reason && <p className="text-sm text-quiet">{t("audit.reason", { reason })}</p>}
        <EntryDetails entry={entry} />
      </div>
    </article>
  );
}

function EntrySentence({ entry }: { entry: AuditEntry }) {
  const { t, language } = useTranslation();
  const role = detailOf(entry, "role");
  const until = detailOf(entry, "until");
  const parts: Record<string, ReactNode> = {
    actor: <PersonLink person={entry.actor} id={entry.actorId} />,
    target:
      entry.targetKind === "USER" ? (
        <PersonLink person={entry.targetUser} id={entry.targetId} />
      ) : (
        <span className="font-semibold">{entry.targetId}</span>
      ),
    community: <CommunityLink id={detailOf(entry, "community") ?? entry.targetId} />,
    role: role && roleNames(role, t),
    until: until && dateAndTime(language, new Date(until)),
    action: entry.action,
  };
  return <Sentence text={sentenceOf(entry, t)} parts={parts} />;
}

function PersonLink({ person, id }: { person: { id: string; name: string } | null; id: string }) {
  if (!person) return <span className="font-semibold">{id}</span>;
  return (
    <a href={hrefOf({ name: "person", id: person.id })} className="font-semibold hover:underline">
      {person.name}
    </a>
  );
}

function CommunityLink({ id }: { id: string }) {
  const { t } = useTranslation();
  const [{ data }] = useQuery({ query: CommunityName, variables: { id } });
  return <span className="font-semibold">{data?.community?.name ?? t("audit.aCommunity")}</span>;
}

function EntryDetails({ entry }: { entry: AuditEntry }) {
  const { t, language } = useTranslation();
  const rows = useMemo(() => detailRows(entry), [entry]);
  return (
    <details className="mt-0.5 text-sm text-quiet">
      <summary className="inline-block rounded py-0.5 hover:text-ink">{t("audit.details")}</summary>
      <dl className="mt-1 grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 rounded-xl bg-well p-3">
        {rows.map(([name, value]) => (
          <div key={name} className="contents">
            <dt>{detailName(name, t)}</dt>
            <dd className="break-words text-ink">{detailValue(name, value, t, language)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function detailRows({ details, targetId, actorId, address, userAgent }: AuditEntry): [string, string][] {
  const rows: [string, string | null][] = [
    ...details
      .filter(({ name }) => !SHOWN_DETAILS.includes(name))
      .map(({ name, value }): [string, string] => [name, value]),
    ["actorId", actorId],
    ["targetId", targetId],
    ["ip", address],
    ["userAgent", userAgent],
  ];
  return rows.filter((row): row is [string, string] => !!row[1]);
}

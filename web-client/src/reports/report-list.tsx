/** The queue of reports of a community, or of the whole organization. New reports appear at once. */
import { useCallback, useEffect, useState } from "react";
import { request, subscribe, useApi } from "../api/api";
import { hrefOf } from "../app/router";
import { relativeTime } from "../i18n/times";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { Avatar } from "../ui/avatar";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { DecideReportDialog } from "./decide-dialog";
import { type ContentReport, ContentReportEvents, ContentReports } from "./operations";

const STATES = ["OPEN", "DECIDED"] as const;

const keyOf = ({ id }: ContentReport) => id;

export function ReportList({ communityId }: { communityId: string | null }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [state, setState] = useState<ContentReport["state"]>("OPEN");
  const loadPage = useCallback(
    async (after: ContentReport | null) => {
      const variables = { communityId, state, after: after?.id ?? null, limit: PAGE_SIZE };
      return (await request(direct, ContentReports, variables)).contentReports;
    },
    [direct, communityId, state],
  );
  const reports = usePagedList(loadPage, keyOf);
  const { reload } = reports;
  useReportEvents(communityId, reload);

  return (
    <>
      <fieldset aria-label={t("report.state")} className="mb-2 flex gap-1.5">
        {STATES.map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={state === each}
            onClick={() => setState(each)}
            className="min-h-9 rounded-full border border-line px-3 text-sm hover:bg-hover aria-pressed:border-accent aria-pressed:bg-glow"
          >
            {t(`report.state.${each}`)}
          </button>
        ))}
      </fieldset>
      <PagedRows
        list={reports}
        label={t("report.queue")}
        empty={<EmptyState icon="check" title={t("report.none")} hint={t("report.noneHint")} />}
      >
        {(report) => <ReportRow key={report.id} report={report} onDecided={reload} />}
      </PagedRows>
    </>
  );
}

/** Calls `onChange` after each change of the queue, and when changes may have been missed. */
function useReportEvents(communityId: string | null, onChange: () => void): void {
  const { direct } = useApi();
  useEffect(
    () =>
      subscribe(direct, ContentReportEvents, { communityId }, ({ contentReportEvents: event }) => {
        if (event.__typename !== "StreamReady" || !event.resumed) onChange();
      }),
    [direct, communityId, onChange],
  );
}

function ReportRow({ report, onDecided }: { report: ContentReport; onDecided: () => void }) {
  const { t, language } = useTranslation();
  const [isDeciding, setIsDeciding] = useState(false);
  const { author, reporter, category, text, contentText, reportedAt, subject, community } = report;
  return (
    <li data-report={report.id} className="flex gap-3 border-b border-line py-4">
      <Avatar user={author} />
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <a href={hrefOf({ name: "person", id: author.id })} className="font-semibold hover:underline">
            {author.name}
          </a>
          <Badge tone="wait">{t(`report.category.${category}`)}</Badge>
          <span className="text-sm text-quiet">
            {t(`report.subject.${subject}`)}
            {community && ` · ${community.name}`}
          </span>
        </p>
        {report.messagesBefore !== null && <MessagesBefore messages={report.messagesBefore} />}
        {/* The content of a person without a bio is the name alone. */}
        {(subject !== "USER" || contentText.includes("\n")) && (
          <blockquote className="my-1 whitespace-pre-wrap border-l-2 border-line pl-3">
            {contentText}
          </blockquote>
        )}
        <p className="text-sm text-quiet">
          {t("report.by", {
            name: reporter.name,
            time: relativeTime(language, new Date(reportedAt), new Date()),
          })}
          {text && `: ${text}`}
        </p>
        {report.state === "DECIDED" && <ReportOutcome report={report} />}
        {report.state === "OPEN" && (
          <Button
            className="mt-2"
            onClick={() => setIsDeciding(true)}
            aria-label={t("report.decideNamed", { name: author.name })}
          >
            {t("report.decide")}
          </Button>
        )}
      </div>
      {isDeciding && (
        <DecideReportDialog
          report={report}
          onClose={() => setIsDeciding(false)}
          onDecided={() => {
            setIsDeciding(false);
            // A decision decides all open reports of the same subject.
            onDecided();
          }}
        />
      )}
    </li>
  );
}

/** The messages before a reported message of a conversation, which the people who decide cannot open. */
function MessagesBefore({ messages }: { messages: NonNullable<ContentReport["messagesBefore"]> }) {
  const { t } = useTranslation();
  if (messages.length === 0) return null;
  return (
    <>
      <p className="mt-1 text-sm text-quiet">{t("report.before")}</p>
      <ol aria-label={t("report.before")} className="my-1 border-l-2 border-line pl-3 text-sm">
        {messages.map(({ author, text, postedAt }) => (
          <li key={postedAt} className="whitespace-pre-wrap">
            <span className="font-medium">{author.name}</span>{" "}
            {text || <span className="text-quiet">{t(text === null ? "report.gone" : "report.noText")}</span>}
          </li>
        ))}
      </ol>
    </>
  );
}

function ReportOutcome({ report: { outcome, decidedBy, note, failure } }: { report: ContentReport }) {
  const { t } = useTranslation();
  if (!outcome) return null;
  return (
    <>
      <p className="mt-1">
        <span className="font-medium">{t(`report.decided.${outcome}`)}</span>
        {decidedBy && ` · ${decidedBy.name}`}
        {note && ` · ${note}`}
      </p>
      {failure && (
        <p className="text-sm text-bad">
          {t("report.failed")} <span lang="en">{failure}</span>
        </p>
      )}
    </>
  );
}

/** The organization's call jobs, newest first, each with its current progress. */
import { type CallsRoute, hrefOf } from "../app/router";
import { FeedList } from "../home/feed-list";
import { dateOf, relativeTime } from "../i18n/times";
import { Badge } from "../ui/badge";
import { Icon, type IconName } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { useCallStore } from "./call-store";
import type { CallJob } from "./operations";
import { CallJobProgressBar } from "./progress-bar";
import { finishedCount, JOB_TONES } from "./state-styles";

export function JobList({ route }: { route: CallsRoute }) {
  const { t } = useTranslation();
  const { jobs } = useCallStore();
  const openJobId = route.name === "callJob" ? route.id : null;
  const Heading = route.name === "calls" ? "h1" : "h2";
  return (
    <nav aria-label={t("calls")} className="flex h-full flex-col">
      <div className="flex min-h-14 items-center justify-between border-b border-line px-4">
        <Heading className="text-lg font-semibold">{t("calls")}</Heading>
        <div className="flex">
          <HeaderLink to={{ name: "callRules" }} icon="sliders" label={t("calls.rules")} route={route} />
          <HeaderLink to={{ name: "newCallJob" }} icon="plus" label={t("calls.new")} route={route} />
        </div>
      </div>
      <div className="min-h-0 grow">
        <FeedList
          feed={jobs}
          isNarrow
          empty={
            <EmptyState icon="phone" title={t("calls.none")} hint={t("calls.noneHint")}>
              <a href={hrefOf({ name: "newCallJob" })} className="text-accent underline">
                {t("calls.new")}
              </a>
            </EmptyState>
          }
        >
          {(job) => <JobLink key={job.id} job={job} isSelected={job.id === openJobId} />}
        </FeedList>
      </div>
    </nav>
  );
}

interface HeaderLinkProps {
  to: CallsRoute;
  icon: IconName;
  label: string;
  route: CallsRoute;
}

function HeaderLink({ to, icon, label, route }: HeaderLinkProps) {
  return (
    <a
      href={hrefOf(to)}
      aria-label={label}
      title={label}
      aria-current={to.name === route.name ? "page" : undefined}
      className="inline-flex size-9 items-center justify-center rounded-full text-quiet hover:bg-hover aria-[current]:bg-glow aria-[current]:text-accent"
    >
      <Icon name={icon} />
    </a>
  );
}

function JobLink({ job, isSelected }: { job: CallJob; isSelected: boolean }) {
  const { t, language } = useTranslation();
  const { progress } = job;
  return (
    <a
      href={hrefOf({ name: "callJob", id: job.id })}
      aria-current={isSelected ? "page" : undefined}
      data-job={job.id}
      className="my-1 flex flex-col gap-1.5 rounded-xl px-3 py-2.5 hover:bg-hover aria-[current]:bg-glow"
    >
      <span className="flex items-center gap-2">
        <span className="min-w-0 grow truncate font-medium">{job.name}</span>
        <Badge tone={JOB_TONES[job.state]}>{t(`callState.${job.state}`)}</Badge>
      </span>
      {progress.total > 0 && <CallJobProgressBar progress={progress} className="h-1.5" />}
      <span className="flex justify-between gap-2 text-sm text-quiet tabular-nums">
        <span>
          {progress.total > 0
            ? `${finishedCount(progress).toLocaleString(language)} / ${progress.total.toLocaleString(language)}`
            : t("callList.bad", { count: job.rowErrorCount })}
        </span>
        <time dateTime={job.createdAt}>{relativeTime(language, dateOf(job.timestamp), new Date())}</time>
      </span>
    </a>
  );
}

/** The erasures of the organization with their progress. */
import { useCallback } from "react";
import { request, useApi } from "../api/api";
import { dateAndTime } from "../i18n/times";
import { PAGE_SIZE } from "../timeline/paged-list";
import { usePagedList } from "../timeline/use-paged-list";
import { useRepeatedly } from "../timeline/use-repeatedly";
import { Avatar } from "../ui/avatar";
import { Badge, type BadgeTone } from "../ui/badge";
import { PagedRows } from "../ui/paged-rows";
import { useTranslation } from "../ui/preferences";
import { LabelledProgress } from "../ui/progress";
import { EmptyState } from "../ui/states";
import { type Erasure, Erasures } from "./operations";

const REFRESH_INTERVAL_MS = 5_000;
const TONES: Record<Erasure["state"], BadgeTone> = { PENDING: "wait", RUNNING: "live", COMPLETED: "quiet" };

const keyOf = ({ userId }: Erasure) => userId;

export function ErasureList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const loadPage = useCallback(
    async (after: Erasure | null) =>
      (await request(direct, Erasures, { after: after?.userId ?? null, limit: PAGE_SIZE })).erasures,
    [direct],
  );
  const erasures = usePagedList(loadPage, keyOf);
  useRepeatedly(erasures.loadNewest, REFRESH_INTERVAL_MS);
  return (
    <>
      <p className="mb-2 text-quiet">{t("erasures.hint")}</p>
      <PagedRows
        list={erasures}
        label={t("admin.erasures")}
        empty={<EmptyState icon="check" title={t("erasures.none")} hint={t("erasures.noneHint")} />}
      >
        {(erasure) => <ErasureRow key={erasure.userId} erasure={erasure} />}
      </PagedRows>
    </>
  );
}

function ErasureRow({ erasure }: { erasure: Erasure }) {
  const { t, language } = useTranslation();
  const { user, userId, state, requestedAt, stepsDone, steps, completedAt } = erasure;
  const isCompleted = state === "COMPLETED";
  const timeText = (instant: string) => dateAndTime(language, new Date(instant));
  return (
    <li data-erasure={userId} className="flex gap-3 border-b border-line py-3">
      <Avatar user={user} />
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="font-semibold">{isCompleted ? t("erasures.deletedUser") : user.name}</span>
          <Badge tone={TONES[state]}>{t(`erasures.state.${state}`)}</Badge>
        </p>
        <p className="text-sm text-quiet">
          {t("erasures.requested", { time: timeText(requestedAt) })}
          {completedAt && ` · ${t("erasures.completed", { time: timeText(completedAt) })}`}
        </p>
        <p className="break-all text-sm text-quiet">{t("erasures.id", { id: userId })}</p>
        {!isCompleted && (
          <LabelledProgress
            label={t("erasures.steps", { done: stepsDone, total: steps })}
            done={stepsDone}
            total={steps}
          />
        )}
      </div>
    </li>
  );
}

/** The invalid rows of a rejected list, loaded page by page. */
import { useEffect, useState } from "react";
import { request, useApi } from "../../api/api";
import { Button } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import { ErrorState, LoadingState } from "../../ui/states";
import { type CallJob, type RowError, RowErrors as RowErrorsQuery } from "../operations";
import { RowErrors } from "./row-errors";

export function RejectedRows({ job }: { job: CallJob }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [errors, setErrors] = useState<readonly RowError[]>([]);
  const [afterRow, setAfterRow] = useState(0);
  const [failure, setFailure] = useState<unknown>(null);
  useEffect(() => {
    let isCurrent = true;
    request(direct, RowErrorsQuery, { id: job.id, afterRow: afterRow }).then(
      ({ callJob }) =>
        isCurrent &&
        setErrors((current) => [
          ...current.filter(({ row }) => row <= afterRow),
          ...(callJob?.rowErrors ?? []),
        ]),
      (error) => isCurrent && setFailure(error),
    );
    return () => {
      isCurrent = false;
    };
  }, [direct, job.id, afterRow]);
  if (failure) return <ErrorState error={failure} />;
  return (
    <section className="mt-5 flex flex-col gap-3">
      <p role="alert" className="rounded-card bg-bad-ground px-4 py-3 text-bad">
        {t("callJob.rejected", { count: job.rowErrorCount })} {t("callList.badHint")}
      </p>
      {errors.length === 0 ? <LoadingState rows={3} /> : <RowErrors errors={errors} />}
      {errors.length > 0 && errors.length < job.rowErrorCount && (
        <Button className="self-center" onClick={() => setAfterRow(errors.at(-1)?.row ?? 0)}>
          {t("showMore")}
        </Button>
      )}
    </section>
  );
}

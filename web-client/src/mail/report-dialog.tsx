/** Why an address is blocked or allowed: its bounces, the decisions of operators, and the actions on it. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { dateAndTime } from "../i18n/times";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialogs/dialog";
import { ReasonDialog } from "../ui/dialogs/reason-dialog";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { notify, notifyError } from "../ui/toasts";
import { AddressReport, BlockAddresses, type Report } from "./decision-operations";
import type { AddressStanding } from "./operations";
import { ReportBounces, ReportChanges } from "./report-lists";
import { type AddressRowProps, UnblockButton } from "./unblock-button";
import { VerdictBadge } from "./verdict";

export function ReportButton(props: AddressRowProps) {
  const { t } = useTranslation();
  const [isOpen, setIsOpen] = useState(false);
  const { address } = props.standing;
  return (
    <>
      <Button onClick={() => setIsOpen(true)} aria-label={t("mailReport.whyNamed", { name: address })}>
        {t("mailReport.why")}
      </Button>
      {isOpen && <ReportDialog {...props} onClose={() => setIsOpen(false)} />}
    </>
  );
}

function ReportDialog({ onClose, ...props }: AddressRowProps & { onClose: () => void }) {
  const { t } = useTranslation();
  const { address } = props.standing;
  const { report, error, load } = useReport(address);

  function replace(updated: readonly AddressStanding[]) {
    props.replace(updated);
    void load();
  }

  return (
    <Dialog title={t("mailReport.title", { name: address })} onClose={onClose}>
      {error !== null && <ErrorState error={error} retry={load} />}
      {error === null && !report && <LoadingState rows={4} />}
      {report && <ReportContents {...props} report={report} replace={replace} />}
    </Dialog>
  );
}

/** Returns the report of an address; null before it is loaded. `load` loads it again. */
function useReport(address: string) {
  const { direct } = useApi();
  const [report, setReport] = useState<Report | null>(null);
  const [error, setError] = useState<unknown>(null);
  const load = useCallback(async () => {
    try {
      setReport((await request(direct, AddressReport, { address })).addressReport);
      setError(null);
    } catch (failure) {
      setError(failure);
    }
  }, [direct, address]);
  useEffect(() => void load(), [load]);
  return { report, error, load };
}

function ReportContents({ report, ...props }: AddressRowProps & { report: Report }) {
  // The report names the normalised address, the results of the lookup the address as it was pasted.
  const standing = { ...report.standing, address: props.standing.address };
  return (
    <div className="flex flex-col gap-5" data-testid="address-report" data-blocked={standing.blocked}>
      <div className="flex flex-wrap items-center justify-between gap-2">
        <VerdictBadge standing={standing} />
        {standing.blocked ? (
          <UnblockButton {...props} standing={standing} />
        ) : (
          <BlockButton standing={standing} replace={props.replace} />
        )}
      </div>
      <ReportTimes report={report} />
      <ReportBounces bounces={report.bounces} />
      <ReportChanges changes={report.changes} />
    </div>
  );
}

function ReportTimes({ report }: { report: Report }) {
  const { t, language } = useTranslation();
  const timeText = (time: string | null) => time && dateAndTime(language, new Date(time));
  const facts = [
    ["mailReport.blockedSince", timeText(report.blockedSince) ?? t("mailReport.notBlocked")],
    ["mailReport.lastDelivery", timeText(report.lastDeliveryAt) ?? t("mailReport.never")],
    ["mailReport.lastComplaint", timeText(report.lastComplaintAt) ?? t("mailReport.never")],
    ["mailReport.policy", t("policy.version", { version: report.policyVersion })],
  ] as const;
  // A dead domain blocks the address without a time of its own.
  const shown = report.blockedSince === null && report.standing.blocked ? facts.slice(1) : facts;
  return (
    <dl className="grid gap-x-6 gap-y-1 sm:grid-cols-[auto_1fr]">
      {shown.map(([textKey, value]) => (
        <div key={textKey} className="contents">
          <dt className="text-quiet">{t(textKey)}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function BlockButton({ standing, replace }: Pick<AddressRowProps, "standing" | "replace">) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [isConfirming, setIsConfirming] = useState(false);
  const { address } = standing;

  async function handleReason(reason: string | null) {
    setIsConfirming(false);
    if (reason === null) return;
    try {
      const { blockAddresses } = await request(direct, BlockAddresses, { addresses: [address], reason });
      replace(blockAddresses.map((updated) => ({ ...updated, address })));
      notify(t("mailReport.blocked", { name: address }));
    } catch (error) {
      notifyError(error);
    }
  }

  return (
    <>
      <Button onClick={() => setIsConfirming(true)}>{t("mailReport.block")}</Button>
      {isConfirming && (
        <ReasonDialog
          title={t("mailReport.block")}
          text={t("mailReport.blockAsk", { name: address })}
          action={t("mailReport.block")}
          isDestructive
          onDone={handleReason}
        />
      )}
    </>
  );
}

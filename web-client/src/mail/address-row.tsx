/** One address: its verdict, counters, and the actions on it. */
import { relativeTime } from "../i18n/times";
import { mayOperate } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { useTranslation } from "../ui/preferences";
import { ReportButton } from "./report-dialog";
import { type AddressRowProps, UnblockButton } from "./unblock-button";
import { DeliveryCounters, VerdictBadge, VerdictDetail } from "./verdict";

export function AddressRow(props: AddressRowProps) {
  const { standing } = props;
  const { language } = useTranslation();
  const mayUnblock = mayOperate(useViewer().roles);
  const { address, blocked, verdict, lastEventAt } = standing;
  return (
    <li
      data-address={address}
      data-blocked={blocked}
      className="grid gap-x-4 gap-y-1 border-b border-line py-3 sm:grid-cols-[minmax(0,1fr)_auto]"
    >
      <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
        <span className="min-w-0 truncate font-medium">{address}</span>
        <VerdictBadge standing={standing} />
      </div>
      <div className="flex flex-wrap gap-2 max-sm:order-last sm:row-span-2 sm:self-center sm:justify-self-end">
        {mayUnblock && standing.normalized !== null && <ReportButton {...props} />}
        {mayUnblock && blocked && standing.normalized !== null && <UnblockButton {...props} />}
      </div>
      <VerdictDetail
        verdict={verdict}
        cleanTextKey="mail.noProblems"
        bounceCount={standing.softBounce + standing.hardBounce}
      />
      {standing.normalized !== null && (
        <div className="flex flex-wrap items-center gap-x-4 text-sm text-quiet sm:col-span-2">
          <DeliveryCounters {...standing} />
          {lastEventAt && (
            <time dateTime={lastEventAt}>{relativeTime(language, new Date(lastEventAt), new Date())}</time>
          )}
        </div>
      )}
    </li>
  );
}

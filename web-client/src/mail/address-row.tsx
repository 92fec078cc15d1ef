/** One address: its verdict, counters, and the unblock action. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { relativeTime } from "../i18n/times";
import { mayOperate } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { ReasonDialog } from "../ui/dialogs/reason-dialog";
import { useTranslation } from "../ui/preferences";
import { notify, notifyError } from "../ui/toasts";
import {
  AddressBook,
  type AddressStanding,
  SetDomainBlocked,
  UnblockAddress,
  type VerdictRule,
} from "./operations";
import { DeliveryCounters, VerdictBadge, VerdictDetail } from "./verdict";

interface Props {
  standing: AddressStanding;
  /** Replaces the results of these addresses. */
  replace: (updated: readonly AddressStanding[]) => void;
  /** Returns the addresses of a domain among the results. */
  addressesOfDomain: (domain: string) => string[];
}

const LOOKUPS_MAX = 8;
const LOOKUP_INTERVAL_MS = 1_000;
const DOMAIN_RULES: readonly VerdictRule[] = ["DOMAIN_DEAD", "BY_HAND"];

export function AddressRow(props: Props) {
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
      <div className="max-sm:order-last sm:row-span-2 sm:self-center sm:justify-self-end">
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

/** Unblocks the domain if the domain causes the block, and otherwise the address. Asks for a reason first. */
function UnblockButton({ standing, replace, addressesOfDomain }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [isConfirming, setIsConfirming] = useState(false);
  const { address, verdict, domain } = standing;
  const blockingDomain = DOMAIN_RULES.includes(verdict.rule) && domain?.blocked ? domain.domain : null;
  const textKeys = blockingDomain
    ? ({ title: "mail.allowDomain", text: "mail.allowDomainAsk" } as const)
    : ({ title: "mail.unblock", text: "mail.unblockAsk" } as const);

  async function handleReason(reason: string | null) {
    setIsConfirming(false);
    if (reason === null) return;
    try {
      if (blockingDomain) await allowDomain(blockingDomain, reason);
      else {
        const updated = (await request(direct, UnblockAddress, { address, reason })).unblockAddress;
        replace([{ ...updated, address }]);
        if (updated.blocked) return notify(t("mail.domainBlocks", { name: updated.domain?.domain ?? "" }));
      }
      notify(t("mail.unblocked", { name: blockingDomain ?? address }));
    } catch (error) {
      notifyError(error);
    }
  }

  async function allowDomain(domain: string, reason: string) {
    await request(direct, SetDomainBlocked, { domain, blocked: false, reason });
    // Servers cache a domain for up to five seconds, so the lookup is repeated until the change is visible.
    for (let lookupsLeft = LOOKUPS_MAX; lookupsLeft > 0; lookupsLeft--) {
      const standings = (await request(direct, AddressBook, { addresses: addressesOfDomain(domain) }))
        .addressBook;
      replace(standings);
      if (standings.every((standing) => !standing.domain?.blocked)) return;
      await new Promise((resolve) => setTimeout(resolve, LOOKUP_INTERVAL_MS));
    }
  }

  return (
    <>
      <Button
        onClick={() => setIsConfirming(true)}
        aria-label={`${t(textKeys.title)} ${blockingDomain ?? address}`}
      >
        {t(textKeys.title)}
      </Button>
      {isConfirming && (
        <ReasonDialog
          title={t(textKeys.title)}
          text={t(textKeys.text, { name: blockingDomain ?? address })}
          action={t(textKeys.title)}
          onDone={handleReason}
        />
      )}
    </>
  );
}

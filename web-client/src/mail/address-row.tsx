/** One address: its verdict, counters, and the unblock action. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { rejectionText } from "../api/failure";
import { relativeTime } from "../i18n/times";
import { mayOperate } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { AddressBook, type AddressStanding, type Rule, SetDomainBlocked, UnblockAddress } from "./operations";
import { ReasonDialog } from "./reason-dialog";
import { Counters, VerdictBadge, VerdictDetail } from "./verdict";

interface Props {
  standing: AddressStanding;
  /** Replaces the results of these addresses. */
  replace: (updated: readonly AddressStanding[]) => void;
  /** The looked-up addresses of a domain. */
  inDomain: (domain: string) => string[];
}

const LOOKUP_TRIES = 8;
const LOOKUP_PAUSE_MS = 1_000;
const DOMAIN_RULES: readonly Rule[] = ["DOMAIN_DEAD", "BY_HAND"];

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
        <VerdictBadge blocked={blocked} verdict={verdict} />
      </div>
      <div className="max-sm:order-last sm:row-span-2 sm:self-center sm:justify-self-end">
        {mayUnblock && blocked && standing.normalized !== null && <Unblock {...props} />}
      </div>
      <VerdictDetail
        verdict={verdict}
        clean="mail.noProblems"
        bounces={standing.softBounce + standing.hardBounce}
      />
      {standing.normalized !== null && (
        <div className="flex flex-wrap items-center gap-x-4 text-sm text-quiet sm:col-span-2">
          <Counters {...standing} />
          {lastEventAt && (
            <time dateTime={lastEventAt}>{relativeTime(language, new Date(lastEventAt), new Date())}</time>
          )}
        </div>
      )}
    </li>
  );
}

/** Unblocks the domain if the domain causes the block, otherwise the address. */
function Unblock({ standing, replace, inDomain }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [isConfirming, setIsConfirming] = useState(false);
  const { address, verdict, domain } = standing;
  const byDomain = DOMAIN_RULES.includes(verdict.rule) && domain?.blocked ? domain.domain : null;
  const words = byDomain
    ? ({ title: "mail.allowDomain", text: "mail.allowDomainAsk" } as const)
    : ({ title: "mail.unblock", text: "mail.unblockAsk" } as const);

  async function done(reason: string | null) {
    setIsConfirming(false);
    if (reason === null) return;
    try {
      if (byDomain) await allowDomain(byDomain, reason);
      else {
        const updated = (await request(direct, UnblockAddress, { address, reason })).unblockAddress;
        replace([{ ...updated, address }]);
        if (updated.blocked) return notify(t("mail.domainBlocks", { name: updated.domain?.domain ?? "" }));
      }
      notify(t("mail.unblocked", { name: byDomain ?? address }));
    } catch (error) {
      const rejection = rejectionText(error);
      if (rejection) notify(rejection);
      else notifyFailure(error);
    }
  }

  async function allowDomain(domain: string, reason: string) {
    await request(direct, SetDomainBlocked, { domain, blocked: false, reason });
    // Lookups may return data of a domain that is up to five seconds old.
    for (let tries_left = LOOKUP_TRIES; tries_left > 0; tries_left--) {
      const standings = (await request(direct, AddressBook, { addresses: inDomain(domain) })).addressBook;
      replace(standings);
      if (standings.every((one) => !one.domain?.blocked)) return;
      await new Promise((resolve) => setTimeout(resolve, LOOKUP_PAUSE_MS));
    }
  }

  return (
    <>
      <Button onClick={() => setIsConfirming(true)} aria-label={`${t(words.title)} ${byDomain ?? address}`}>
        {t(words.title)}
      </Button>
      {isConfirming && (
        <ReasonDialog
          title={t(words.title)}
          text={t(words.text, { name: byDomain ?? address })}
          action={t(words.title)}
          onDone={done}
        />
      )}
    </>
  );
}

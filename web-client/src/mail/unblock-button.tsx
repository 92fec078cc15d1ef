/** The button that unblocks an address, or allows the domain that blocks it. */
import { useState } from "react";
import { request, useApi } from "../api/api";
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

export interface AddressRowProps {
  standing: AddressStanding;
  /** Replaces the results of these addresses. */
  replace: (updated: readonly AddressStanding[]) => void;
  /** Returns the addresses of a domain among the results. */
  addressesOfDomain: (domain: string) => string[];
}

const LOOKUPS_MAX = 8;
const LOOKUP_INTERVAL_MS = 1_000;
const DOMAIN_RULES: readonly VerdictRule[] = ["DOMAIN_DEAD", "BY_HAND"];

/** Unblocks the domain if the domain causes the block, and otherwise the address. Asks for a reason first. */
export function UnblockButton({ standing, replace, addressesOfDomain }: AddressRowProps) {
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

/** One address: the verdict, what it rests on, and the way to take a block back. */
import { useState } from "react";
import { ask, useApi } from "../api/api";
import { refusalOf } from "../api/failure";
import { ago } from "../i18n/times";
import { mayOperate } from "../session/rights";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { useWords } from "../ui/preferences";
import { tell, tellFailure } from "../ui/toasts";
import { AddressBook, type AddressStanding, type Rule, SetDomainBlocked, UnblockAddress } from "./operations";
import { Reason } from "./reason";
import { Counters, VerdictBadge, VerdictDetail } from "./verdict";

interface Props {
  standing: AddressStanding;
  /** Puts these in the place of what was known of their addresses. */
  replace: (fresh: readonly AddressStanding[]) => void;
  /** The addresses that were asked for in a domain. */
  inDomain: (domain: string) => string[];
}

const ASK_AGAIN = 8;
const ASK_AGAIN_MS = 1_000;
const OF_DOMAIN: readonly Rule[] = ["DOMAIN_DEAD", "BY_HAND"];

export function AddressRow(props: Props) {
  const { standing } = props;
  const { language } = useWords();
  const may = mayOperate(useViewer().roles);
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
        {may && blocked && standing.normalized !== null && <Unblock {...props} />}
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
            <time dateTime={lastEventAt}>{ago(language, new Date(lastEventAt), new Date())}</time>
          )}
        </div>
      )}
    </li>
  );
}

/** Takes back what blocks: of a blocked domain the domain's block, else the address' own. */
function Unblock({ standing, replace, inDomain }: Props) {
  const { t } = useWords();
  const { direct } = useApi();
  const [asking, setAsking] = useState(false);
  const { address, verdict, domain } = standing;
  const byDomain = OF_DOMAIN.includes(verdict.rule) && domain?.blocked ? domain.domain : null;
  const words = byDomain
    ? ({ title: "mail.allowDomain", text: "mail.allowDomainAsk" } as const)
    : ({ title: "mail.unblock", text: "mail.unblockAsk" } as const);

  async function done(reason: string | null) {
    setAsking(false);
    if (reason === null) return;
    try {
      if (byDomain) await allowDomain(byDomain, reason);
      else {
        const now = (await ask(direct, UnblockAddress, { address, reason })).unblockAddress;
        replace([{ ...now, address }]);
        if (now.blocked) return tell(t("mail.domainBlocks", { name: now.domain?.domain ?? "" }));
      }
      tell(t("mail.unblocked", { name: byDomain ?? address }));
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal) tell(refusal);
      else tellFailure(error);
    }
  }

  async function allowDomain(domain: string, reason: string) {
    await ask(direct, SetDomainBlocked, { domain, blocked: false, reason });
    // Lookups may answer with what they knew of a domain up to five seconds ago.
    for (let tries_left = ASK_AGAIN; tries_left > 0; tries_left--) {
      const fresh = (await ask(direct, AddressBook, { addresses: inDomain(domain) })).addressBook;
      replace(fresh);
      if (fresh.every((one) => !one.domain?.blocked)) return;
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }

  return (
    <>
      <Button onClick={() => setAsking(true)} aria-label={`${t(words.title)} ${byDomain ?? address}`}>
        {t(words.title)}
      </Button>
      {asking && (
        <Reason
          title={t(words.title)}
          text={t(words.text, { name: byDomain ?? address })}
          action={t(words.title)}
          onDone={done}
        />
      )}
    </>
  );
}

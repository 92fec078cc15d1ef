/** Looks up domains: their delivery counts and verdicts, and buttons to block or allow them manually. */
import { type FormEvent, useState } from "react";
import { request, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import { hrefOf } from "../app/router";
import { mayOperate } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { ReasonDialog } from "../ui/dialogs/reason-dialog";
import { LabelledField } from "../ui/fields/labelled-field";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { notify, notifyFailure } from "../ui/toasts";
import { domainsIn, LOOKUP_MAX } from "./addresses";
import { type DomainStanding, DomainStandings, SetDomainBlocked } from "./operations";
import { selectedDomain } from "./rates";
import { DeliveryCounters, VerdictBadge, VerdictDetail } from "./verdict";

export function DomainLookup() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [text, setText] = useState("");
  const [isLoading, setIsLoading] = useState(false);
  const [rejection, setRejection] = useState<string | null>(null);
  const [standings, setStandings] = useState<readonly DomainStanding[] | null>(null);
  const domains = domainsIn(text).slice(0, LOOKUP_MAX);

  async function lookUp(event: FormEvent) {
    event.preventDefault();
    if (domains.length === 0) return;
    setIsLoading(true);
    try {
      setStandings((await request(direct, DomainStandings, { domains })).domainStandings);
      setRejection(null);
    } catch (error) {
      setRejection(rejectionText(error) ?? t(failureTextKey(error)));
    }
    setIsLoading(false);
  }

  return (
    <>
      <form onSubmit={lookUp} className="flex flex-wrap items-end gap-3">
        <LabelledField label={t("mail.domainsLabel")} hint={t("mail.domainsHint")} className="grow basis-72">
          {(props) => (
            <input
              {...props}
              className="field"
              autoCapitalize="off"
              spellCheck={false}
              placeholder="example.org, example.com"
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </LabelledField>
        <Button type="submit" kind="main" disabled={isLoading || domains.length === 0}>
          <Icon name="search" className="size-4" />
          {t("mail.look")}
        </Button>
      </form>
      {rejection && (
        <p role="alert" className="mt-3 text-bad">
          {rejection}
        </p>
      )}
      {standings === null ? (
        <EmptyState icon="mail" title={t("mail.domainsNone")} hint={t("mail.domainsNoneHint")} />
      ) : (
        <ul className="mt-6">
          {standings.map((standing, index) => (
            <DomainRow
              key={standing.id}
              standing={standing}
              put={(updated) => setStandings(standings.with(index, updated))}
            />
          ))}
        </ul>
      )}
    </>
  );
}

function DomainRow({ standing, put }: { standing: DomainStanding; put: (now: DomainStanding) => void }) {
  const { t } = useTranslation();
  const mayChange = mayOperate(useViewer().roles) && standing.verdict.rule !== "INVALID_ADDRESS";
  const { domain, verdict } = standing;
  return (
    <li
      data-domain={domain}
      data-blocked={standing.blocked}
      className="grid gap-x-4 gap-y-1 border-b border-line py-3 sm:grid-cols-[minmax(0,1fr)_auto]"
    >
      <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
        <span className="min-w-0 truncate font-medium">{domain}</span>
        <VerdictBadge standing={standing} />
      </div>
      <div className="max-sm:order-last sm:row-span-2 sm:self-center">
        {mayChange && <ManualSettingButtons standing={standing} put={put} />}
      </div>
      <VerdictDetail
        verdict={verdict}
        cleanTextKey="mail.noBounces"
        bounceCount={standing.softBounce + standing.hardBounce}
      />
      <div className="flex flex-wrap items-center gap-x-4 text-sm sm:col-span-2">
        <DeliveryCounters {...standing} />
        {mayChange && (
          <a
            href={hrefOf({ name: "bounceRates" })}
            onClick={() => selectedDomain.set(domain)}
            className="text-accent underline"
          >
            {t("mail.rates")}
          </a>
        )}
      </div>
    </li>
  );
}

/**
 * The buttons for a domain's manual setting. True blocks the domain, false allows it, null restores the automatic rule.
 * The chosen setting is undefined while no dialog is open.
 */
function ManualSettingButtons({
  standing,
  put,
}: {
  standing: DomainStanding;
  put: (now: DomainStanding) => void;
}) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [setting, setSetting] = useState<boolean | null | undefined>(undefined);
  const { domain, blocked, verdict } = standing;
  const textKey = setting === null ? "mail.byRule" : setting ? "mail.blockDomain" : "mail.allowDomain";

  async function handleReason(reason: string | null) {
    setSetting(undefined);
    if (reason === null || setting === undefined) return;
    try {
      put((await request(direct, SetDomainBlocked, { domain, blocked: setting, reason })).setDomainBlocked);
      notify(t("mail.domainChanged", { name: domain }));
    } catch (error) {
      notifyFailure(error);
    }
  }

  return (
    <div className="flex flex-wrap gap-2">
      {verdict.rule === "BY_HAND" && <Button onClick={() => setSetting(null)}>{t("mail.byRule")}</Button>}
      <Button onClick={() => setSetting(!blocked)}>
        {t(blocked ? "mail.allowDomain" : "mail.blockDomain")}
      </Button>
      {setting !== undefined && (
        <ReasonDialog
          title={t(textKey)}
          text={t(`${textKey}Ask`, { name: domain })}
          action={t(textKey)}
          isDestructive={setting === true}
          onDone={handleReason}
        />
      )}
    </div>
  );
}

/** The mail screens: addresses, domains, the policy and bounce rates. */
import "../i18n/mail-texts";
import { hrefOf, type MailRoute } from "../app/router";
import { mayReadMail } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { Tab } from "../ui/tabs";
import { AddressLookup } from "./address-list";
import { DomainLookup } from "./domain-list";
import { PolicyPage } from "./policy/page";
import { BounceRateReport } from "./rates";

const TABS = [
  { name: "mail", textKey: "mail.addresses" },
  { name: "mailDomains", textKey: "mail.domains" },
  { name: "mailPolicy", textKey: "policy.tab" },
  { name: "bounceRates", textKey: "mail.rates" },
] as const;

export function MailScreen({ route }: { route: MailRoute }) {
  const { t } = useTranslation();
  const { roles } = useViewer();
  const mayRead = mayReadMail(roles);
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <h1 className="sr-only">{t("mail")}</h1>
      {mayRead ? (
        <div className="mx-auto max-w-5xl px-3 pb-16 sm:px-6">
          <MailTabs current={route.name} />
          <MailContents name={route.name} />
        </div>
      ) : (
        <EmptyState icon="mail" title={t("mail.forbidden")} hint={t("mail.forbiddenHint")} />
      )}
    </div>
  );
}

function MailTabs({ current }: { current: MailRoute["name"] }) {
  const { t } = useTranslation();
  return (
    <nav aria-label={t("mail")} className="flex flex-wrap items-center gap-1 py-4">
      {TABS.map(({ name, textKey }) => (
        <Tab key={name} href={hrefOf({ name })} isCurrent={current === name}>
          {t(textKey)}
        </Tab>
      ))}
    </nav>
  );
}

function MailContents({ name }: { name: MailRoute["name"] }) {
  if (name === "mailDomains") return <DomainLookup />;
  if (name === "mailPolicy") return <PolicyPage />;
  return name === "bounceRates" ? <BounceRateReport /> : <AddressLookup />;
}

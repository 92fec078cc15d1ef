/** The page of an opened account link: the first administrator, an invitation, a verification, or a reset. */
import { useEffect, useState } from "react";
import { createApi, request } from "../../api/api";
import type { TextKey } from "../../i18n/texts";
import { Button } from "../../ui/button";
import { useTranslation } from "../../ui/preferences";
import { notify, notifyError } from "../../ui/toasts";
import { useSignInMethods, WelcomeFrame } from "../sign-in";
import { AccountForm, AddressField, HandleField, NameField, PasswordField, TextButton } from "./account-form";
import { type AccountLink, accountLink } from "./account-link";
import { accountFailureTextKey, sendAccountRequest } from "./account-requests";
import { AcceptInvitation } from "./operations";
import { useNewCredential } from "./passkey-sign-in";
import { enterSession, MailSentNotice } from "./password-sign-in";

const close = () => accountLink.set(null);

/** `token` is the credential of the signed-in user; null if nobody is signed in. */
export function AccountLinkPage({ link, token }: { link: AccountLink; token: string | null }) {
  const { t } = useTranslation();
  return (
    <WelcomeFrame>
      <h1 className="sr-only">{t("account")}</h1>
      <AccountLinkForm link={link} token={token} />
      <p>
        <TextButton onClick={close}>{t("local.leave")}</TextButton>
      </p>
    </WelcomeFrame>
  );
}

function AccountLinkForm({ link, token }: { link: AccountLink; token: string | null }) {
  const { t, language } = useTranslation();
  const credential = useNewCredential();
  if (link.kind === "invitation") return <InvitationPanel invitation={link.token} token={token} />;
  if (link.kind === "reset")
    return (
      <AccountForm
        title={t("local.reset")}
        lead={t("local.resetLead")}
        action={t("save")}
        submit={async ({ password }) => {
          await sendAccountRequest("/accounts/reset", { reset: link.token, password });
          close();
          notify(t("local.resetDone"));
        }}
      >
        <PasswordField isNew />
      </AccountForm>
    );
  const isFirst = link.kind === "first-admin";
  return (
    <AccountForm
      title={t(isFirst ? "local.firstAdmin" : "local.finish")}
      lead={t(isFirst ? "local.firstAdminLead" : "local.finishLead")}
      action={t("local.create")}
      submit={async (values) => {
        const token: Record<string, string> = { [isFirst ? "firstAdmin" : "verification"]: link.token };
        const passwordOrPasskey = await credential.create(values, token);
        const path = isFirst ? "/accounts" : "/accounts/verification";
        await sendAccountRequest(path, { ...values, language, ...token, ...passwordOrPasskey });
        await enterSession();
        close();
      }}
      footer={credential.choice}
    >
      {isFirst && <AddressField />}
      <NameField />
      <HandleField />
      {credential.field}
    </AccountForm>
  );
}

interface InvitationOffer {
  state: string;
  role: string;
  address: string | null;
  community: string | null;
}

const STATE_TEXT_KEYS: Record<string, TextKey> = {
  USED_UP: "local.usedUp",
  EXPIRED: "local.expired",
  REVOKED: "local.revoked",
};

function InvitationPanel({ invitation, token }: { invitation: string; token: string | null }) {
  const { t } = useTranslation();
  const [offer, setOffer] = useState<InvitationOffer | null>(null);
  const [failure, setFailure] = useState<TextKey | null>(null);
  useEffect(() => {
    sendAccountRequest("/accounts/invitation", { invitation }).then(
      (answer) => setOffer(answer as unknown as InvitationOffer),
      (error) => setFailure(accountFailureTextKey(error)),
    );
  }, [invitation]);
  const reason = failure ?? (offer && STATE_TEXT_KEYS[offer.state]);
  if (reason)
    return (
      <p role="alert" className="rounded-card bg-wait-ground px-4 py-3 text-wait">
        {t(reason)}
      </p>
    );
  if (offer === null) return <p role="status">{t("loading")}</p>;
  return token === null ? (
    <SignedOutInvitation invitation={invitation} offer={offer} />
  ) : (
    <SignedInInvitation invitation={invitation} offer={offer} token={token} />
  );
}

function useOfferText({ role, community }: InvitationOffer): string {
  const { t } = useTranslation();
  const roleName = t(`role.${role}` as TextKey);
  return community
    ? t("local.invitedTo", { role: roleName, community })
    : t("local.invited", { role: roleName });
}

interface InvitationProps {
  invitation: string;
  offer: InvitationOffer;
}

/** Accepts by signing in at a provider, or by creating an account here. */
function SignedOutInvitation({ invitation, offer }: InvitationProps) {
  const { t } = useTranslation();
  const lead = useOfferText(offer);
  const methods = useSignInMethods();
  if (methods === null) return <p role="status">{t("loading")}</p>;
  const providers = methods.filter(({ method }) => method === "OIDC");
  const hasAccounts = methods.some(({ method }) => method === "PASSWORD");
  return (
    <>
      {providers.map(({ name }) => (
        <AccountForm
          key={name}
          title={t("local.invitation")}
          lead={lead}
          action={t("signIn.with", { name })}
          submit={async () => {
            const { url } = await sendAccountRequest("/sign-in/oidc/invitation", { invitation });
            location.assign(String(url));
          }}
        />
      ))}
      {hasAccounts && (
        <NewAccountForm
          invitation={invitation}
          offer={offer}
          title={t(providers.length > 0 ? "local.orAccount" : "local.invitation")}
          lead={providers.length > 0 ? "" : lead}
        />
      )}
    </>
  );
}

function NewAccountForm({
  invitation,
  offer,
  title,
  lead,
}: InvitationProps & { title: string; lead: string }) {
  const { t, language } = useTranslation();
  const [isMailed, setIsMailed] = useState(false);
  const credential = useNewCredential();
  if (isMailed) return <MailSentNotice />;
  return (
    <AccountForm
      title={title}
      lead={offer.address === null ? `${lead} ${t("local.proveAddress")}` : lead}
      action={t(offer.address === null ? "local.sendMail" : "local.create")}
      submit={async (values) => {
        if (offer.address === null) {
          await sendAccountRequest("/accounts", { ...values, language, invitation });
          return setIsMailed(true);
        }
        const passwordOrPasskey = await credential.create(values, { invitation });
        await sendAccountRequest("/accounts", { ...values, language, invitation, ...passwordOrPasskey });
        await enterSession();
        close();
      }}
      footer={
        <>
          {offer.address !== null && credential.choice}
          <TextButton onClick={close}>{t("local.haveAccount")}</TextButton>
        </>
      }
    >
      <AddressField value={offer.address ?? undefined} />
      {offer.address !== null && (
        <>
          <NameField />
          <HandleField />
          {credential.field}
        </>
      )}
    </AccountForm>
  );
}

function SignedInInvitation(props: { invitation: string; offer: InvitationOffer; token: string }) {
  const { t } = useTranslation();
  const lead = useOfferText(props.offer);
  async function accept() {
    try {
      const { cached } = createApi(props.token, () => {});
      await request(cached, AcceptInvitation, { token: props.invitation });
      notify(t("local.accepted"));
      close();
    } catch (error) {
      notifyError(error);
    }
  }
  return (
    <section aria-label={t("local.invitation")} className="max-w-md">
      <h2 className="text-xl font-semibold">{t("local.invitation")}</h2>
      <p className="mt-1 text-quiet">{lead}</p>
      <Button kind="main" className="mt-4" onClick={accept}>
        {t("local.accept")}
      </Button>
    </section>
  );
}

/** The page of an opened account link: the first administrator, an invitation, a verification, or a reset. */
import { useEffect, useState } from "react";
import { createApi, request } from "../api/api";
import { rejectionText } from "../api/failure";
import { graphql } from "../api/graphql";
import type { TextKey } from "../i18n/texts";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { AccountForm, AddressField, NameField, PasswordField, TextButton } from "./account-form";
import { type AccountLink, accountLink } from "./account-link";
import { accountFailureTextKey, sendAccountRequest } from "./account-requests";
import { enterSession, Mailed } from "./password-sign-in";
import { WelcomeFrame } from "./sign-in";

const close = () => accountLink.set(null);

/** `token` is that of the signed-in user, or null. */
export function AccountLinkPage({ link, token }: { link: AccountLink; token: string | null }) {
  const { t } = useTranslation();
  return (
    <WelcomeFrame>
      <h1 className="sr-only">{t("account")}</h1>
      <LinkForm link={link} token={token} />
      <p>
        <TextButton onClick={close}>{t("local.leave")}</TextButton>
      </p>
    </WelcomeFrame>
  );
}

function LinkForm({ link, token }: { link: AccountLink; token: string | null }) {
  const { t, language } = useTranslation();
  if (link.kind === "invitation") return <Invitation invitation={link.token} token={token} />;
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
        if (isFirst) await sendAccountRequest("/accounts", { ...values, language, firstAdmin: link.token });
        else
          await sendAccountRequest("/accounts/verification", {
            ...values,
            language,
            verification: link.token,
          });
        await enterSession();
        close();
      }}
    >
      {isFirst && <AddressField />}
      <NameField />
      <PasswordField isNew />
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

function Invitation({ invitation, token }: { invitation: string; token: string | null }) {
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
    <InvitedAccount invitation={invitation} offer={offer} />
  ) : (
    <AcceptInvitation invitation={invitation} offer={offer} token={token} />
  );
}

function useOfferText({ role, community }: InvitationOffer): string {
  const { t } = useTranslation();
  const roleName = t(`role.${role}` as TextKey);
  return community
    ? t("local.invitedTo", { role: roleName, community })
    : t("local.invited", { role: roleName });
}

function InvitedAccount({ invitation, offer }: { invitation: string; offer: InvitationOffer }) {
  const { t, language } = useTranslation();
  const lead = useOfferText(offer);
  const [isMailed, setIsMailed] = useState(false);
  if (isMailed) return <Mailed />;
  return (
    <AccountForm
      title={t("local.invitation")}
      lead={offer.address === null ? `${lead} ${t("local.proveAddress")}` : lead}
      action={t(offer.address === null ? "local.sendMail" : "local.create")}
      submit={async (values) => {
        await sendAccountRequest("/accounts", { ...values, language, invitation });
        if (offer.address === null) return setIsMailed(true);
        await enterSession();
        close();
      }}
      footer={<TextButton onClick={close}>{t("local.haveAccount")}</TextButton>}
    >
      <AddressField value={offer.address ?? undefined} />
      {offer.address !== null && (
        <>
          <NameField />
          <PasswordField isNew />
        </>
      )}
    </AccountForm>
  );
}

const AcceptMutation = graphql(`
  mutation AcceptInvitation($token: String!) { acceptInvitation(token: $token) { id roles } }
`);

function AcceptInvitation(props: { invitation: string; offer: InvitationOffer; token: string }) {
  const { t } = useTranslation();
  const lead = useOfferText(props.offer);
  async function accept() {
    try {
      const { cached } = createApi(props.token, () => {});
      await request(cached, AcceptMutation, { token: props.invitation });
      notify(t("local.accepted"));
      close();
    } catch (error) {
      const text = rejectionText(error);
      if (text) notify(text);
      else notifyFailure(error);
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

/** Invitations to the organization: created, copied and revoked here. A link is shown once. */
import { useCallback, useState } from "react";
import { request, useApi } from "../../api/api";
import { dateAndTime } from "../../i18n/times";
import { PAGE_SIZE } from "../../timeline/paged-list";
import { usePagedList } from "../../timeline/use-paged-list";
import { Badge, type BadgeTone } from "../../ui/badge";
import { Button } from "../../ui/button";
import { SecretDialog } from "../../ui/dialogs/secret-dialog";
import { Icon } from "../../ui/icons";
import { PagedRows } from "../../ui/paged-rows";
import { useTranslation } from "../../ui/preferences";
import { EmptyState } from "../../ui/states";
import { notify, notifyFailure } from "../../ui/toasts";
import { InvitationDialog } from "./dialog";
import { type Invitation, Invitations, RevokeInvitation } from "./operations";

const TONES: Record<Invitation["state"], BadgeTone> = {
  OPEN: "good",
  USED_UP: "quiet",
  EXPIRED: "quiet",
  REVOKED: "bad",
};

const keyOf = ({ id }: Invitation) => id;

export function InvitationList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [isInviting, setIsInviting] = useState(false);
  const [url, setUrl] = useState<string | null>(null);
  const loadPage = useCallback(
    async (after: Invitation | null) =>
      (await request(direct, Invitations, { after: after?.id ?? null, limit: PAGE_SIZE })).invitations,
    [direct],
  );
  const invitations = usePagedList(loadPage, keyOf);

  async function revoke({ id }: Invitation) {
    try {
      const { revokeInvitation: revoked } = await request(direct, RevokeInvitation, { id });
      invitations.change((each) => (each.id === id ? revoked : each));
      notify(t("invitations.revoked"));
    } catch (error) {
      notifyFailure(error);
    }
  }

  return (
    <>
      <div className="mb-2 flex items-start justify-between gap-4">
        <p className="text-quiet">{t("invitations.hint")}</p>
        <Button kind="main" className="shrink-0" onClick={() => setIsInviting(true)}>
          <Icon name="plus" className="size-4" />
          {t("invitations.new")}
        </Button>
      </div>
      <PagedRows
        list={invitations}
        label={t("admin.invitations")}
        empty={<EmptyState icon="mail" title={t("invitations.none")} hint={t("invitations.noneHint")} />}
      >
        {(invitation) => (
          <InvitationRow key={invitation.id} invitation={invitation} onRevoke={() => revoke(invitation)} />
        )}
      </PagedRows>
      {isInviting && (
        <InvitationDialog
          onClose={() => setIsInviting(false)}
          onCreated={(link) => {
            setIsInviting(false);
            setUrl(link);
            if (link === null) notify(t("invitations.alreadySent"));
            invitations.reload();
          }}
        />
      )}
      {url && (
        <SecretDialog
          title={t("invitations.created")}
          label={t("invitations.link")}
          hint={t("invitations.once")}
          secret={url}
          onClose={() => setUrl(null)}
        />
      )}
    </>
  );
}

function InvitationRow({ invitation, onRevoke }: { invitation: Invitation; onRevoke: () => void }) {
  const { t, language } = useTranslation();
  const { state, role, community, email, uses, maxUses, creator, expiresAt } = invitation;
  // The API empties the address when the person is erased.
  const title = email === "" ? t("erasures.deletedUser") : (email ?? t("invitations.anybody"));
  const texts = [
    t(`role.${role}`),
    community?.name,
    t("invitations.uses", { uses, count: maxUses }),
    creator && t("invitations.by", { name: creator.name }),
    t("invitations.until", { time: dateAndTime(language, new Date(expiresAt)) }),
  ];
  return (
    <li
      data-invitation={invitation.id}
      className="flex flex-wrap items-center gap-x-4 gap-y-2 border-b border-line py-3 sm:flex-nowrap"
    >
      <div className="min-w-0 grow">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="font-semibold">{title}</span>
          <Badge tone={TONES[state]}>{t(`invitations.state.${state}`)}</Badge>
        </p>
        <p className="text-sm text-quiet">{texts.filter(Boolean).join(" · ")}</p>
      </div>
      {state === "OPEN" && (
        <Button
          className="shrink-0"
          onClick={onRevoke}
          aria-label={t("invitations.revokeNamed", { name: title })}
        >
          {t("invitations.revoke")}
        </Button>
      )}
    </li>
  );
}

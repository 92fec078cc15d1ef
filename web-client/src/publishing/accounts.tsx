/** The organization's connected accounts: list, connect, replace credentials and disconnect. */
import { useState } from "react";
import { useMutation, useQuery } from "urql";
import { dateAndTime, dayLabel } from "../i18n/times";
import { IconButton } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { Dialog } from "../ui/dialogs/dialog";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { notifyFailure } from "../ui/toasts";
import { ConnectionNotice } from "./browser-connection";
import { ConnectForm } from "./connect-form";
import type { ConnectionResult } from "./connection-result";
import { ReplaceCredentialsDialog } from "./credentials";
import { Accounts, type ConnectedAccount, DisconnectAccount, type Network } from "./operations";

interface DialogProps {
  /** The result to show, if the network has just sent the browser back. */
  result: ConnectionResult | null;
  onClose: () => void;
}

export function AccountsDialog({ result, onClose }: DialogProps) {
  const { t } = useTranslation();
  return (
    <Dialog title={t("publishing.accounts")} onClose={onClose}>
      <AccountList result={result} />
    </Dialog>
  );
}

/** The same list, for the settings of the organization. */
export function AccountsSection() {
  const { t } = useTranslation();
  return (
    <section aria-labelledby="accounts" className="mt-10">
      <h2 id="accounts" className="mb-3 border-b border-line pb-3 text-lg font-semibold">
        {t("publishing.accounts")}
      </h2>
      <AccountList result={null} />
    </section>
  );
}

function AccountList({ result }: { result: ConnectionResult | null }) {
  const { t } = useTranslation();
  const [{ data, error }, load] = useQuery({ query: Accounts, requestPolicy: "cache-and-network" });
  const reload = () => load({ requestPolicy: "network-only" });
  const connected = data?.connectedAccounts.filter(({ disconnectedAt }) => disconnectedAt === null);
  const browserNetworks = data?.browserNetworks ?? [];
  return (
    <>
      {error && !data && <ErrorState error={error} retry={reload} />}
      {!error && !data && <LoadingState rows={2} />}
      {connected && (
        <div className="flex flex-col gap-5">
          {result !== null && <ConnectionNotice result={result} accounts={connected} />}
          {connected.length === 0 && <p className="text-quiet">{t("publishing.noAccounts")}</p>}
          <ul className="flex flex-col gap-2">
            {connected.map((account) => (
              <AccountRow key={account.id} account={account} networks={browserNetworks} reload={reload} />
            ))}
          </ul>
          <ConnectForm reload={reload} browserNetworks={browserNetworks} />
        </div>
      )}
    </>
  );
}

interface RowProps {
  account: ConnectedAccount;
  /** The networks at which the person can allow access in the browser. */
  networks: readonly Network[];
  reload: () => void;
}

function AccountRow({ account, networks, reload }: RowProps) {
  const { t, language } = useTranslation();
  const [isConfirming, setIsConfirming] = useState(false);
  const [isReplacing, setIsReplacing] = useState(false);
  const [, disconnect] = useMutation(DisconnectAccount);
  async function handleAnswer(isConfirmed: boolean) {
    setIsConfirming(false);
    if (!isConfirmed) return;
    const { error } = await disconnect({ id: account.id });
    if (error) notifyFailure(error);
    reload();
  }
  return (
    <li data-account={account.name} className="flex items-center gap-3 rounded-card border border-line p-3">
      <span className="min-w-0 grow">
        <span className="block truncate font-medium">{account.name}</span>
        <span className="block truncate text-sm text-quiet">
          {[
            t(`publishing.network.${account.network}`),
            account.handle,
            dayLabel(language, new Date(account.connectedAt), new Date()),
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
        <CredentialsState account={account} />
      </span>
      <IconButton
        icon="key"
        label={t("publishing.replace", { name: account.name })}
        onClick={() => setIsReplacing(true)}
      />
      <IconButton
        icon="trash"
        label={t("publishing.disconnect", { name: account.name })}
        onClick={() => setIsConfirming(true)}
      />
      {isConfirming && (
        <ConfirmDialog
          title={t("publishing.disconnect", { name: account.name })}
          text={t("publishing.disconnectAsk")}
          action={t("publishing.disconnectDo")}
          onDone={handleAnswer}
        />
      )}
      {isReplacing && (
        <ReplaceCredentialsDialog
          account={account}
          networks={networks}
          onClose={() => {
            setIsReplacing(false);
            reload();
          }}
        />
      )}
    </li>
  );
}

/** Says why the account needs other credentials, or when they end; nothing for credentials without a known end. */
function CredentialsState({ account }: { account: ConnectedAccount }) {
  const { t, language } = useTranslation();
  if (account.attention)
    return (
      <span className="block text-sm text-bad">
        {t("publishing.needsCredentials")} <span lang="en">{account.attention.reason}</span>
      </span>
    );
  if (account.credentialsExpireAt === null) return null;
  const date = dateAndTime(language, new Date(account.credentialsExpireAt));
  return (
    <span className="block text-sm text-quiet">
      {t(account.renewsCredentials ? "publishing.renewedBefore" : "publishing.endsAt", { date })}
    </span>
  );
}

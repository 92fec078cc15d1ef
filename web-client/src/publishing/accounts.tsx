/** The organization's connected accounts: list, connect, replace credentials and disconnect. */
import { type ReactNode, useState } from "react";
import { useMutation, useQuery } from "urql";
import { LIMITS } from "../api/limits";
import { dayLabel } from "../i18n/times";
import { Button, IconButton } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { Dialog } from "../ui/dialogs/dialog";
import { useLength } from "../ui/fields/length";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { notify, notifyFailure } from "../ui/toasts";
import {
  CredentialsField,
  CredentialsFormError,
  firstCredentials,
  ReplaceCredentialsDialog,
} from "./credentials";
import {
  Accounts,
  ConnectAccount,
  type ConnectedAccount,
  DisconnectAccount,
  type Network,
} from "./operations";
import { useSubmission } from "./posts/form-error";

const NETWORKS: readonly Network[] = ["SANDBOX", "MASTODON", "BLUESKY", "X", "INSTAGRAM", "WEBHOOK"];

export function AccountsDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Dialog title={t("publishing.accounts")} onClose={onClose}>
      <AccountList />
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
      <AccountList />
    </section>
  );
}

function AccountList() {
  const { t } = useTranslation();
  const [{ data, error }, load] = useQuery({ query: Accounts, requestPolicy: "cache-and-network" });
  const reload = () => load({ requestPolicy: "network-only" });
  const connected = data?.connectedAccounts.filter(({ disconnectedAt }) => disconnectedAt === null);
  return (
    <>
      {error && !data && <ErrorState error={error} retry={reload} />}
      {!error && !data && <LoadingState rows={2} />}
      {connected && (
        <div className="flex flex-col gap-5">
          {connected.length === 0 && <p className="text-quiet">{t("publishing.noAccounts")}</p>}
          <ul className="flex flex-col gap-2">
            {connected.map((account) => (
              <AccountRow key={account.id} account={account} reload={reload} />
            ))}
          </ul>
          <ConnectForm reload={reload} />
        </div>
      )}
    </>
  );
}

function AccountRow({ account, reload }: { account: ConnectedAccount; reload: () => void }) {
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
          onClose={() => {
            setIsReplacing(false);
            reload();
          }}
        />
      )}
    </li>
  );
}

function ConnectForm({ reload }: { reload: () => void }) {
  const { t } = useTranslation();
  const submission = useSubmission();
  const [, connect] = useMutation(ConnectAccount);
  const [network, setNetwork] = useState<Network>("SANDBOX");
  const [name, setName] = useState("");
  const [credentials, setCredentials] = useState(() => firstCredentials("SANDBOX"));
  const [baseUrl, setBaseUrl] = useState("");
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID());
  const isSandbox = network === "SANDBOX";
  const length = useLength(name, LIMITS.accountName);
  const canConnect = name.trim() !== "" && !length.isTooLong && !submission.isBusy;

  function choose(next: Network) {
    setNetwork(next);
    setCredentials(firstCredentials(next));
    submission.clearError();
  }

  async function send() {
    const input = {
      network,
      name: name.trim(),
      credentials,
      baseUrl: isSandbox ? null : baseUrl.trim() || null,
    };
    const { error } = await connect({ input: { ...input, idempotencyKey: idempotencyKey } });
    if (error) throw error;
    notify(t("publishing.connected", { name: input.name }));
    setName("");
    setIdempotencyKey(crypto.randomUUID());
    choose("SANDBOX");
    setBaseUrl("");
    reload();
  }

  return (
    <form
      aria-label={t("publishing.connect")}
      className="flex flex-col gap-3 border-t border-line pt-4"
      onSubmit={(event) => {
        event.preventDefault();
        if (canConnect) void submission.run(send);
      }}
    >
      <h3 className="font-semibold">{t("publishing.connect")}</h3>
      <FormField text={t("publishing.network")}>
        <select className="field" value={network} onChange={(event) => choose(event.target.value as Network)}>
          {NETWORKS.map((each) => (
            <option key={each} value={each}>
              {t(`publishing.network.${each}`)}
            </option>
          ))}
        </select>
      </FormField>
      {isSandbox && <p className="text-sm text-quiet">{t("publishing.sandboxHint")}</p>}
      <FormField text={t("publishing.accountName")}>
        <input
          className="field"
          required
          value={name}
          onChange={(event) => setName(event.target.value)}
          {...length.fieldProps}
        />
        {length.note}
      </FormField>
      <CredentialsField
        network={network}
        value={credentials}
        onChange={setCredentials}
        submission={submission}
      />
      {!isSandbox && (
        <FormField text={t("publishing.baseUrl")} hint={t("publishing.baseUrlHint")}>
          <input
            className="field text-sm"
            type="url"
            required={network === "WEBHOOK" || network === "MASTODON"}
            placeholder="https://…"
            value={baseUrl}
            onChange={(event) => setBaseUrl(event.target.value)}
          />
        </FormField>
      )}
      <CredentialsFormError {...submission} />
      <Button type="submit" kind="main" disabled={!canConnect} className="self-end">
        {t("publishing.connectDo")}
      </Button>
    </form>
  );
}

interface FormFieldProps {
  text: string;
  hint?: string;
  children: ReactNode;
}

function FormField({ text, hint, children }: FormFieldProps) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the label contains its field.
    <label className="flex flex-col gap-1">
      <span className="text-sm font-medium">{text}</span>
      {children}
      {hint && <span className="text-sm text-quiet">{hint}</span>}
    </label>
  );
}

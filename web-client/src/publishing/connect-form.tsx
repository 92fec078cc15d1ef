/** The form that connects an account: at the network where that is possible, or with pasted credentials. */
import { type ReactNode, useState } from "react";
import { useMutation } from "urql";
import { LIMITS } from "../api/limits";
import { Button } from "../ui/button";
import { useLength } from "../ui/fields/length";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { openNetwork, useHasSession } from "./browser-connection";
import { CredentialsField, CredentialsFormError, firstCredentials } from "./credentials";
import { ConnectAccount, ConnectInBrowser, type Network } from "./operations";
import { useSubmission } from "./posts/form-error";

const NETWORKS: readonly Network[] = ["SANDBOX", "MASTODON", "BLUESKY", "X", "INSTAGRAM", "WEBHOOK"];

interface Props {
  reload: () => void;
  /** The networks at which the person can allow access in the browser. */
  browserNetworks: readonly Network[];
}

export function ConnectForm({ reload, browserNetworks }: Props) {
  const { t } = useTranslation();
  const submission = useSubmission();
  const hasSession = useHasSession();
  const [, connect] = useMutation(ConnectAccount);
  const [, connectInBrowser] = useMutation(ConnectInBrowser);
  const [network, setNetwork] = useState<Network>("SANDBOX");
  const [name, setName] = useState("");
  const [credentials, setCredentials] = useState(() => firstCredentials("SANDBOX"));
  const [baseUrl, setBaseUrl] = useState("");
  const [isPasting, setIsPasting] = useState(false);
  const [idempotencyKey, setIdempotencyKey] = useState(() => crypto.randomUUID());
  const isInBrowser = hasSession && browserNetworks.includes(network);
  const isAllowing = isInBrowser && !isPasting;
  const needsAddress = network === "WEBHOOK" || network === "MASTODON";
  const hasAddress = isAllowing ? needsAddress : network !== "SANDBOX";
  const length = useLength(name, LIMITS.accountName);
  const canConnect = name.trim() !== "" && !length.isTooLong && !submission.isBusy;

  function choose(next: Network) {
    setNetwork(next);
    setCredentials(firstCredentials(next));
    setIsPasting(false);
    submission.clearError();
  }

  async function send() {
    const input = { network, name: name.trim(), baseUrl: hasAddress ? baseUrl.trim() || null : null };
    if (isAllowing) return allow(input);
    const { error } = await connect({ input: { ...input, credentials, idempotencyKey } });
    if (error) throw error;
    notify(t("publishing.connected", { name: input.name }));
    setName("");
    setIdempotencyKey(crypto.randomUUID());
    choose("SANDBOX");
    setBaseUrl("");
    reload();
  }

  async function allow(input: { network: Network; name: string; baseUrl: string | null }) {
    const { data, error } = await connectInBrowser({ input });
    if (error) throw error;
    if (data) openNetwork(data.connectAccountInBrowser.url);
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
      {network === "SANDBOX" && <p className="text-sm text-quiet">{t("publishing.sandboxHint")}</p>}
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
      {!isAllowing && (
        <CredentialsField
          network={network}
          value={credentials}
          onChange={setCredentials}
          submission={submission}
        />
      )}
      {hasAddress && (
        <FormField
          text={t("publishing.baseUrl")}
          hint={t(isAllowing ? "publishing.serverHint" : "publishing.baseUrlHint")}
        >
          <input
            className="field text-sm"
            type="url"
            required={needsAddress}
            placeholder="https://…"
            value={baseUrl}
            onChange={(event) => setBaseUrl(event.target.value)}
          />
        </FormField>
      )}
      {isAllowing && <p className="text-sm text-quiet">{t("publishing.allowHint")}</p>}
      <CredentialsFormError {...submission} />
      <div className="flex flex-wrap items-center justify-end gap-2">
        {isInBrowser && (
          <Button onClick={() => setIsPasting(!isPasting)}>
            {t(isPasting ? "publishing.allowInstead" : "publishing.pasteInstead")}
          </Button>
        )}
        <Button type="submit" kind="main" disabled={!canConnect}>
          {isAllowing
            ? t("publishing.allowDo", { network: t(`publishing.network.${network}`) })
            : t("publishing.connectDo")}
        </Button>
      </div>
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

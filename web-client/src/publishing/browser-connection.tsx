/** Connecting an account in the browser: the way to the network, and what the person sees after the way back. */
import { useMutation } from "urql";
import type { TextKey } from "../i18n/texts";
import { isSession } from "../session/identity";
import { token } from "../session/session";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { createValue, useValue } from "../ui/value";
import { type ConnectionResult, takeConnectionResult } from "./connection-result";
import { type ConnectedAccount, type Network, ReconnectInBrowser } from "./operations";
import { FormError, useSubmission } from "./posts/form-error";

/** The result with which this page was opened, until the person has seen it. */
export const connectionResult = createValue(takeConnectionResult());

const FAILURE_TEXT_KEYS: Record<string, TextKey> = {
  CONFLICT: "publishing.connectionFailure.CONFLICT",
  EXPIRED: "publishing.connectionFailure.EXPIRED",
  FORBIDDEN: "publishing.connectionFailure.FORBIDDEN",
  NOT_ACCEPTED: "publishing.connectionFailure.NOT_ACCEPTED",
  OTHER_ACCOUNT: "publishing.connectionFailure.OTHER_ACCOUNT",
  OTHER_SESSION: "publishing.connectionFailure.OTHER_SESSION",
  REFUSED: "publishing.connectionFailure.REFUSED",
  SIGNED_OUT: "publishing.connectionFailure.SIGNED_OUT",
  UNAVAILABLE: "publishing.connectionFailure.UNAVAILABLE",
};

/** Returns whether this browser has a session, to which a connection belongs. A token has none. */
export function useHasSession(): boolean {
  return isSession(useValue(token) ?? "");
}

/** Leaves this page for the network, which sends the browser back. */
export function openNetwork(url: string): void {
  location.assign(url);
}

interface ResultProps {
  result: ConnectionResult;
  accounts: readonly ConnectedAccount[];
}

/** Says whether the account was connected, after the network has sent the browser back. */
export function ConnectionNotice({ result, accounts }: ResultProps) {
  const { t } = useTranslation();
  if ("failure" in result)
    return (
      <p role="alert" className="rounded-card bg-bad-ground px-3 py-2 text-sm text-bad">
        {t(FAILURE_TEXT_KEYS[result.failure] ?? "publishing.connectionFailure.FAILED")}
      </p>
    );
  const name = accounts.find(({ id }) => id === result.accountId)?.name;
  return name === undefined ? null : (
    <p role="status" className="rounded-card bg-good-ground px-3 py-2 text-sm text-good">
      {t("publishing.connected", { name })}
    </p>
  );
}

interface ReconnectProps {
  account: ConnectedAccount;
  networks: readonly Network[];
}

/** Begins to connect an account again at its network; nothing for a network or a browser where that is impossible. */
export function ReconnectInBrowserButton({ account, networks }: ReconnectProps) {
  const { t } = useTranslation();
  const submission = useSubmission();
  const hasSession = useHasSession();
  const [, reconnect] = useMutation(ReconnectInBrowser);
  if (!hasSession || !networks.includes(account.network)) return null;

  async function begin() {
    const { data, error } = await reconnect({ id: account.id });
    if (error) throw error;
    if (data) openNetwork(data.reconnectAccountInBrowser.url);
  }

  return (
    <div className="flex flex-col gap-3 border-b border-line pb-4">
      <Button
        kind="main"
        className="self-start"
        disabled={submission.isBusy}
        onClick={() => submission.run(begin)}
      >
        {t("publishing.allowAgain", { network: t(`publishing.network.${account.network}`) })}
      </Button>
      <FormError {...submission} />
      <p className="text-sm text-quiet">{t("publishing.orPaste")}</p>
    </div>
  );
}

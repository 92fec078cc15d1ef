/** Signing out from the account menu or the command palette, with a question if typed texts would be lost. */
import { type ReactNode, useState } from "react";
import { signOut } from "../session/session";
import { useUserStorage } from "../session/user-storage";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";

const signOutOrExplain = () => signOut().catch(() => notifyFailure({ networkError: true }));

/**
 * Returns a function that signs the user out, and the dialog with its question; null while there is no question.
 * Signing out deletes drafts and unsent messages from this browser. If there are any, the user confirms it first.
 */
export function useSignOut(): { requestSignOut: () => void; signOutQuestion: ReactNode } {
  const { t } = useTranslation();
  const storage = useUserStorage();
  const [isConfirming, setIsConfirming] = useState(false);
  const requestSignOut = () => {
    if (storage.names("").length > 0) setIsConfirming(true);
    else void signOutOrExplain();
  };
  const signOutQuestion = isConfirming ? (
    <ConfirmDialog
      title={t("signOut")}
      text={t("signOut.ask")}
      action={t("signOut")}
      onDone={(isConfirmed) => {
        setIsConfirming(false);
        if (isConfirmed) void signOutOrExplain();
      }}
    />
  ) : null;
  return { requestSignOut, signOutQuestion };
}

/** The section in which the viewer deletes the viewer's own account. */
import { useState } from "react";
import { EraseDialog } from "../privacy/erase-dialog";
import { mayAdminister } from "../session/permissions";
import { signOut } from "../session/session";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";

export function EraseSection() {
  const { t } = useTranslation();
  const viewer = useViewer();
  const [isOpen, setIsOpen] = useState(false);
  // The session has ended with the account, so the server may refuse to end it once more.
  const signOutHere = () => void signOut().catch(() => {});
  return (
    <section aria-labelledby="erase" className="mt-10 border-t border-line pt-6">
      <h2 id="erase" className="text-lg font-semibold">
        {t("erase.ownTitle")}
      </h2>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <p className="max-w-md text-sm text-quiet">
          {t(mayAdminister(viewer.roles) ? "erase.adminHint" : "erase.ownHint")}
        </p>
        {!mayAdminister(viewer.roles) && (
          <Button onClick={() => setIsOpen(true)} className="text-bad">
            {t("erase.own")}
          </Button>
        )}
      </div>
      {isOpen && (
        <EraseDialog
          user={viewer}
          title={t("erase.ownTitle")}
          text={t("erase.ownAsk")}
          action={t("delete")}
          onClose={() => setIsOpen(false)}
          onErased={signOutHere}
        />
      )}
    </section>
  );
}

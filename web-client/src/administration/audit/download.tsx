/** The button that downloads the audit log with the current filters as NDJSON. */
import { useState } from "react";
import { requestHeaders } from "../../session/identity";
import { token } from "../../session/session";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { saveFile } from "../../ui/save-file";
import { notify } from "../../ui/toasts";
import { type AuditCriteria, auditAddress } from "./address";

export function AuditDownload({ criteria }: { criteria: AuditCriteria }) {
  const { t } = useTranslation();
  const [isLoading, setIsLoading] = useState(false);

  async function download() {
    setIsLoading(true);
    try {
      const response = await fetch(auditAddress(criteria), { headers: requestHeaders(token.get() ?? "") });
      if (!response.ok) throw new Error(`The server refused the download: ${response.status}`);
      saveFile("audit.ndjson", await response.blob());
    } catch {
      notify(t("audit.notDownloaded"));
    }
    setIsLoading(false);
  }

  return (
    <p className="flex flex-wrap items-center justify-end gap-x-3 gap-y-1 text-sm text-quiet">
      <span id="audit-download-hint">{t("audit.downloadHint")}</span>
      <Button isBusy={isLoading} aria-describedby="audit-download-hint" onClick={download}>
        <Icon name="down" className="size-4" />
        {t("audit.download")}
      </Button>
    </p>
  );
}

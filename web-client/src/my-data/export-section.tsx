/** The export of the viewer's own data: requested here, with its progress, and downloaded when it is complete. */
import { useCallback, useEffect, useState } from "react";
import { request, subscribe, useApi } from "../api/api";

import { dateAndTime } from "../i18n/times";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { LabelledProgress } from "../ui/progress";
import { notifyError } from "../ui/toasts";
import { sizeText } from "./export-size";
import { type DataExport, DataExportEvents, ExportMyData, MyDataExport } from "./operations";

/** For this long after a request, the server returns the same export instead of a new one. */
const EXPORT_REUSE_MS = 3_600_000;

export function ExportSection() {
  const { t, language } = useTranslation();
  const { direct } = useApi();
  const [dataExport, setDataExport] = useState<DataExport | null>(null);

  const load = useCallback(async () => {
    const { myDataExport } = await request(direct, MyDataExport, {});
    setDataExport(myDataExport);
    return myDataExport;
  }, [direct]);
  useEffect(() => void load().catch(notifyError), [load]);
  useExportEvents(dataExport, setDataExport);

  const start = () =>
    request(direct, ExportMyData, {}).then(({ exportMyData }) => setDataExport(exportMyData), notifyError);
  async function download() {
    try {
      // A download URL works for 10 minutes, so each download gets a new URL.
      const url = (await load())?.downloadUrl;
      if (url) location.assign(url);
    } catch (error) {
      notifyError(error);
    }
  }

  const isReady = dataExport?.state === "COMPLETED";
  return (
    <section aria-labelledby="export" data-export={dataExport?.state ?? ""} className="mb-10">
      <div className="flex flex-wrap items-center justify-between gap-3 border-b border-line pb-3">
        <div className="min-w-0 max-w-md">
          <h2 id="export" className="text-lg font-semibold">
            {t("export.title")}
          </h2>
          <p className="text-sm text-quiet">{t("export.hint")}</p>
        </div>
        <div className="flex flex-wrap gap-2">
          {mayStart(dataExport) && <Button onClick={start}>{t("export.start")}</Button>}
          {isReady && (
            <Button kind="main" onClick={download}>
              {t("export.download")}
            </Button>
          )}
        </div>
      </div>
      {dataExport && (
        <div className="py-3">
          <ExportProgress dataExport={dataExport} />
          {isReady && (
            <p className="text-sm text-quiet">
              {t("export.ready", {
                size: sizeText(language, dataExport.sizeBytes),
                until: dateAndTime(language, new Date(dataExport.expiresAt)),
              })}
            </p>
          )}
        </div>
      )}
    </section>
  );
}

function ExportProgress({ dataExport: { state, filesDone, files, failure } }: { dataExport: DataExport }) {
  const { t } = useTranslation();
  if (state === "COMPLETED") return null;
  if (state === "FAILED")
    return (
      <p role="alert" className="text-bad">
        {t(failure === "TOO_LARGE" ? "export.tooLarge" : "export.failed")}
      </p>
    );
  return (
    <LabelledProgress
      label={t("export.files", { done: filesDone, total: files })}
      done={filesDone}
      total={files}
    />
  );
}

function mayStart(dataExport: DataExport | null): boolean {
  if (!dataExport || dataExport.state === "FAILED") return true;
  return (
    dataExport.state === "COMPLETED" && Date.now() - Date.parse(dataExport.requestedAt) > EXPORT_REUSE_MS
  );
}

/** Follows an export until it has ended. */
function useExportEvents(dataExport: DataExport | null, onChange: (changed: DataExport) => void): void {
  const { direct } = useApi();
  const id = dataExport?.id;
  const isRunning = dataExport?.state === "PENDING" || dataExport?.state === "RUNNING";
  useEffect(() => {
    if (!id || !isRunning) return;
    return subscribe(direct, DataExportEvents, { id }, ({ jobEvents: event }) => {
      if (event.__typename === "DataExportChanged") onChange(event.export);
      // Changes from before the subscription are missing, so the export is read again.
      else if (event.__typename === "StreamReady" && !event.resumed)
        request(direct, MyDataExport, {}).then(
          ({ myDataExport }) => myDataExport && onChange(myDataExport),
          () => {}, // The next event has the state.
        );
    });
  }, [direct, id, isRunning, onChange]);
}

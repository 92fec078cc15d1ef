/** The input for a list of phone numbers: drag and drop, a file picker, or pasted text. */
import { type DragEvent, useId, useRef, useState } from "react";
import { Button, IconButton } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { notify } from "../../ui/toasts";
import { EXAMPLE_CSV } from "./draft";
import { decodeFile, type Encoding } from "./encoding";

const FILE_MAX_BYTES = 10 * 1024 * 1024;

interface ChosenCsvFile {
  name: string;
  bytes: number;
  encoding: Encoding;
}

export function CallListInput({ csv, onChange }: { csv: string; onChange: (csv: string) => void }) {
  const { t } = useTranslation();
  const id = useId();
  const picker = useRef<HTMLInputElement>(null);
  const [isDropTarget, setIsDropTarget] = useState(false);
  const [chosen, setChosen] = useState<ChosenCsvFile | null>(null);

  async function loadFile(file: File | undefined) {
    if (!file) return;
    if (file.size > FILE_MAX_BYTES) return notify(t("callList.tooLarge"));
    const { text, encoding } = decodeFile(await file.arrayBuffer());
    setChosen({ name: file.name, bytes: file.size, encoding });
    onChange(text);
  }

  function handleDrop(event: DragEvent) {
    event.preventDefault();
    setIsDropTarget(false);
    void loadFile(event.dataTransfer.files[0]);
  }

  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={chosen ? undefined : id} className="text-sm font-medium">
        {t("callList.numbers")}
      </label>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a drop target for files; the button does the same. */}
      <div
        onDragOver={(event) => {
          event.preventDefault();
          setIsDropTarget(true);
        }}
        onDragLeave={() => setIsDropTarget(false)}
        onDrop={handleDrop}
        className={`flex flex-col gap-3 rounded-card border-2 border-dashed p-3 ${isDropTarget ? "border-accent bg-glow" : "border-line"}`}
      >
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <Icon name="file" className="size-5 text-quiet" />
          <span className="text-quiet">{t("callList.drop")}</span>
          <Button onClick={() => picker.current?.click()}>{t("callList.choose")}</Button>
          <input
            ref={picker}
            type="file"
            accept=".csv,.tsv,.txt,text/csv"
            aria-label={t("callList.choose")}
            tabIndex={-1}
            className="sr-only"
            onChange={(event) => {
              void loadFile(event.target.files?.[0]);
              event.target.value = "";
            }}
          />
        </div>
        {chosen ? (
          <CsvFileChip
            file={chosen}
            remove={() => {
              setChosen(null);
              onChange("");
            }}
          />
        ) : (
          <textarea
            id={id}
            aria-describedby={`${id}-hint`}
            className="field thin-scroll h-40 resize-y font-mono text-sm"
            spellCheck={false}
            wrap="off"
            placeholder={"phone_number,name\n+819012345678,佐藤"}
            value={csv}
            onChange={(event) => onChange(event.target.value)}
          />
        )}
      </div>
      <p id={`${id}-hint`} className="text-sm text-quiet">
        {t("callList.format")}{" "}
        {csv === "" && (
          <button type="button" className="text-accent underline" onClick={() => onChange(EXAMPLE_CSV)}>
            {t("callList.example")}
          </button>
        )}
      </p>
    </div>
  );
}

function CsvFileChip({ file, remove }: { file: ChosenCsvFile; remove: () => void }) {
  const { t, language } = useTranslation();
  const kilobytes = Math.max(1, Math.round(file.bytes / 1024));
  return (
    <div className="flex items-center gap-3 rounded-xl bg-hover px-3 py-2">
      <div className="min-w-0 grow">
        <p className="truncate font-medium">{file.name}</p>
        <p role="status" className="text-sm text-quiet">
          {t("callList.encoding", { encoding: file.encoding })}
        </p>
      </div>
      <span className="text-sm text-quiet tabular-nums">{kilobytes.toLocaleString(language)} kB</span>
      <IconButton icon="close" label={t("callList.remove")} size="size-8" onClick={remove} />
    </div>
  );
}

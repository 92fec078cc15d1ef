/** The button that opens the browser's dialog to choose files. */
import { useRef } from "react";
import { IconButton } from "../ui/button";
import { useTranslation } from "../ui/preferences";

export function FilePicker({ onPick }: { onPick: (files: readonly File[]) => void }) {
  const { t } = useTranslation();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        onChange={({ target }) => {
          const files = [...(target.files ?? [])];
          target.value = "";
          onPick(files);
        }}
      />
      <IconButton icon="file" label={t("file.add")} onClick={() => input.current?.click()} />
    </>
  );
}

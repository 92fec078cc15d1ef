/** The buttons that open the browser's dialog to choose files and, on a touch screen, the camera. */
import { type ComponentProps, useRef } from "react";
import { IconButton } from "../ui/button";
import type { IconName } from "../ui/icons";
import { useTranslation } from "../ui/preferences";

interface Props {
  onPick: (files: readonly File[]) => void;
}

export function FilePicker({ onPick }: Props) {
  const { t } = useTranslation();
  return (
    <>
      <FileButton icon="file" label={t("file.add")} onPick={onPick} multiple />
      <FileButton
        icon="camera"
        label={t("file.takePicture")}
        onPick={onPick}
        accept="image/*"
        capture="environment"
        className="not-pointer-coarse:hidden"
      />
    </>
  );
}

interface FileButtonProps extends Props, Pick<ComponentProps<"input">, "multiple" | "accept" | "capture"> {
  icon: IconName;
  label: string;
  className?: string;
}

/** A button in place of a file input, with the attributes of the input. */
function FileButton({ icon, label, onPick, className, ...inputProps }: FileButtonProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        onChange={({ target }) => {
          const files = [...(target.files ?? [])];
          target.value = "";
          onPick(files);
        }}
        {...inputProps}
      />
      <IconButton icon={icon} label={label} className={className} onClick={() => input.current?.click()} />
    </>
  );
}

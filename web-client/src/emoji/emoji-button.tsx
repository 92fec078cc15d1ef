/** A button that opens the emoji picker. The script of the picker is loaded on first use. */
import { lazyScreen } from "../app/lazy-screen";
import { IconButton } from "../ui/button";
import { Popover } from "../ui/dialogs/popover";

const EmojiPicker = lazyScreen(() => import("./emoji-picker").then((module) => module.EmojiPicker));

interface Props {
  label: string;
  size?: string;
  /** Whether the picker offers the stamps of the organization, which are pictures and no text. */
  hasStamps?: boolean;
  /** Called after the picker was closed. */
  onPick: (emoji: string) => void;
}

export function EmojiButton({ label, size, hasStamps = false, onPick }: Props) {
  return (
    <Popover
      label={label}
      trigger={(props) => <IconButton icon="smile" label={label} {...(size && { size })} {...props} />}
    >
      {(close) => (
        <EmojiPicker
          hasStamps={hasStamps}
          onPick={(emoji) => {
            close();
            onPick(emoji);
          }}
        />
      )}
    </Popover>
  );
}

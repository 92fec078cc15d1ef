/** A button that opens a list of actions. */
import { IconButton } from "../button";
import { Popover } from "./popover";

export interface MenuItem {
  key: string;
  text: string;
  isDestructive?: boolean;
  run: () => void;
}

export function Menu({ label, items }: { label: string; items: readonly MenuItem[] }) {
  return (
    <Popover label={label} trigger={(trigger) => <IconButton icon="more" label={label} {...trigger} />}>
      {(close) => <MenuList items={items} close={close} />}
    </Popover>
  );
}

/** The actions in the panel of a menu. `close` closes the panel. */
export function MenuList({ items, close }: { items: readonly MenuItem[]; close: () => void }) {
  return (
    <ul className="flex min-w-44 flex-col">
      {items.map(({ key, text, isDestructive, run }) => (
        <li key={key}>
          <button
            type="button"
            className={`w-full rounded-lg px-3 py-2 text-left hover:bg-hover ${isDestructive ? "text-bad" : ""}`}
            onClick={() => {
              close();
              run();
            }}
          >
            {text}
          </button>
        </li>
      ))}
    </ul>
  );
}

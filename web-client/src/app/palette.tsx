/** The command palette: opens any topic, person or screen and runs menu commands, by keyboard. */
import { type KeyboardEvent, useEffect, useId, useState } from "react";
import { useQuery } from "urql";
import { useJoinedCommunities } from "../chat/sidebar/joined-communities";
import { useViewer } from "../session/viewer";
import { Dialog } from "../ui/dialogs/dialog";
import { typedKey } from "../ui/fields/typed-key";
import { Icon, type IconName } from "../ui/icons";
import { chooseLanguage, chooseTheme, type Translate, useTranslation } from "../ui/preferences";
import { matchingItems } from "./matching-items";
import { FindUsers } from "./operations";
import { navigate } from "./router";
import { OPERATOR_SCREENS, visibleScreens } from "./screens";

interface PaletteCommand {
  id: string;
  text: string;
  hint: string;
  icon: IconName;
  run: () => void;
}

const COMMANDS_MAX = 12;

export interface CommandPaletteProps {
  onClose: () => void;
  requestSignOut: () => void;
}

export function CommandPalette({ onClose, requestSignOut }: CommandPaletteProps) {
  const { t } = useTranslation();
  const [query, setQuery] = useState("");
  const [chosenIndex, setChosenIndex] = useState(0);
  const id = useId();
  const commands = useCommands(query, t, requestSignOut);
  useEffect(() => {
    document.getElementById(`${id}-${chosenIndex}`)?.scrollIntoView({ block: "nearest" });
  }, [id, chosenIndex]);

  function run(command: PaletteCommand | undefined) {
    if (!command) return;
    onClose();
    command.run();
  }

  function handleKey(event: KeyboardEvent) {
    const key = typedKey(event);
    if (key === "ArrowDown") setChosenIndex((chosenIndex + 1) % Math.max(1, commands.length));
    else if (key === "ArrowUp")
      setChosenIndex((chosenIndex + commands.length - 1) % Math.max(1, commands.length));
    else if (key === "Enter") run(commands[chosenIndex]);
    else return;
    event.preventDefault();
  }

  return (
    <Dialog title={t("search")} onClose={onClose} isBare>
      <input
        className="w-full rounded-t-card border-b border-line bg-transparent px-5 py-4 text-lg outline-none"
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={commands[chosenIndex] ? `${id}-${chosenIndex}` : undefined}
        aria-label={t("palette.label")}
        placeholder={t("palette.label")}
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setChosenIndex(0);
        }}
        onKeyDown={handleKey}
      />
      <div
        id={id}
        role="listbox"
        aria-label={t("search")}
        className="thin-scroll max-h-[50vh] overflow-y-auto p-2"
      >
        {commands.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text field has the focus and handles the keys.
          <div
            key={command.id}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosenIndex}
            onClick={() => run(command)}
            onMouseMove={() => setChosenIndex(index)}
            className="flex cursor-pointer items-center gap-3 rounded-lg px-3 py-2 aria-selected:bg-hover"
          >
            <Icon name={command.icon} className="size-4 text-quiet" />
            <span className="truncate">{command.text}</span>
            <span className="ml-auto truncate text-sm text-quiet">{command.hint}</span>
          </div>
        ))}
      </div>
    </Dialog>
  );
}

function useCommands(query: string, t: Translate, requestSignOut: () => void): PaletteCommand[] {
  const { communities = [] } = useJoinedCommunities("cache-first");
  const { roles } = useViewer();
  const [{ data: people }] = useQuery({ query: FindUsers, variables: { query }, pause: query.trim() === "" });
  const topics = communities.flatMap((community) =>
    community.topics.map((topic) => ({
      id: topic.id,
      text: topic.title,
      hint: community.name,
      icon: "chat" as const,
      run: () => navigate({ name: "topic", id: topic.id, at: null }),
    })),
  );
  const users = (query.trim() ? (people?.users ?? []) : []).map((user) => ({
    id: user.id,
    text: user.name,
    hint: `@${user.handle}`,
    icon: "people" as const,
    run: () => navigate({ name: "person", id: user.id }),
  }));
  const matching = matchingItems(
    [...topics, ...generalCommands(t, requestSignOut), ...operatorCommands(t, roles)],
    query,
    ({ text, hint }) => `${text} ${hint}`,
  );
  const words = query.trim();
  const search: PaletteCommand = {
    id: "search",
    text: words ? t("palette.searchFor", { query: words }) : t("search.start"),
    hint: t("screens"),
    icon: "search",
    run: () => navigate({ name: "search", kind: "messages", query: words }),
  };
  return [...[...matching, ...users].slice(0, COMMANDS_MAX - 1), search];
}

function generalCommands(t: Translate, requestSignOut: () => void): PaletteCommand[] {
  const screen = t("screens");
  const setting = t("settings");
  return [
    { id: "home", text: t("home"), hint: screen, icon: "home", run: () => navigate({ name: "home" }) },
    {
      id: "everyone",
      text: t("everyone"),
      hint: screen,
      icon: "people",
      run: () => navigate({ name: "everyone" }),
    },
    {
      id: "bell",
      text: t("notifications"),
      hint: screen,
      icon: "bell",
      run: () => navigate({ name: "notifications" }),
    },
    {
      id: "publishing",
      text: t("publishing"),
      hint: screen,
      icon: "calendar",
      run: () => navigate({ name: "publishing", view: null, day: null, post: null }),
    },
    {
      id: "schedule",
      text: t("publishing.new"),
      hint: t("publishing"),
      icon: "plus",
      run: () => navigate({ name: "publishing", view: null, day: null, post: "new" }),
    },
    {
      id: "threads",
      text: t("threads"),
      hint: t("chat"),
      icon: "chat",
      run: () => navigate({ name: "threads" }),
    },
    {
      id: "browse",
      text: t("browse"),
      hint: screen,
      icon: "search",
      run: () => navigate({ name: "browse" }),
    },
    {
      id: "myData",
      text: t("myData"),
      hint: screen,
      icon: "shield",
      run: () => navigate({ name: "myData" }),
    },
    { id: "light", text: t("theme.light"), hint: setting, icon: "more", run: () => chooseTheme("light") },
    { id: "dark", text: t("theme.dark"), hint: setting, icon: "more", run: () => chooseTheme("dark") },
    { id: "en", text: "English", hint: setting, icon: "more", run: () => chooseLanguage("en") },
    { id: "ja", text: "日本語", hint: setting, icon: "more", run: () => chooseLanguage("ja") },
    { id: "out", text: t("signOut"), hint: setting, icon: "door", run: requestSignOut },
  ];
}

/** Returns commands that open the operators' screens that the roles permit, and some subscreens of these screens. */
function operatorCommands(t: Translate, roles: readonly string[]): PaletteCommand[] {
  const hint = t("screens");
  const screens = visibleScreens(OPERATOR_SCREENS, roles).map(({ route, textKey, icon }) => ({
    id: textKey,
    text: t(textKey),
    hint,
    icon,
    run: () => navigate(route),
  }));
  const subscreens: PaletteCommand[] = [
    {
      id: "newCallJob",
      text: t("calls.new"),
      hint: t("calls"),
      icon: "plus",
      run: () => navigate({ name: "newCallJob" }),
    },
    {
      id: "callRules",
      text: t("calls.rules"),
      hint: t("calls"),
      icon: "sliders",
      run: () => navigate({ name: "callRules" }),
    },
    {
      id: "audit",
      text: t("admin.audit"),
      hint: t("admin"),
      icon: "list",
      run: () => navigate({ name: "adminAudit", actor: null, target: null }),
    },
    {
      id: "domains",
      text: t("mail.domains"),
      hint: t("mail"),
      icon: "mail",
      run: () => navigate({ name: "mailDomains" }),
    },
    {
      id: "rates",
      text: t("mail.rates"),
      hint: t("mail"),
      icon: "mail",
      run: () => navigate({ name: "bounceRates" }),
    },
  ];
  return [...screens, ...subscreens.filter(({ hint }) => screens.some(({ text }) => text === hint))];
}

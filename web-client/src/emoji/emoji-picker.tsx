/** A picker of emojis: frequent ones, groups, and a search by name. Arrow keys move between the emojis. */
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { useStampPacks } from "../stamps/own-stamps";
import { StampImage } from "../stamps/stamp-image";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import { type Emoji, GROUPS, loadEmojis, OWN_GROUP } from "./emoji-data";
import { findEmojis } from "./emoji-search";

const COLUMNS = 8;
const STEPS: Record<string, number> = {
  ArrowLeft: -1,
  ArrowRight: 1,
  ArrowUp: -COLUMNS,
  ArrowDown: COLUMNS,
};

/** Emojis that are shown first, before the others are loaded. */
const FREQUENT = ["👍", "❤️", "😂", "🎉", "🔥", "👀", "🙏", "😮", "😢", "✅", "🙌", "💡"];

interface Props {
  /** Whether to offer the stamps of the organization. */
  hasStamps: boolean;
  onPick: (emoji: string) => void;
}

export function EmojiPicker({ hasStamps, onPick }: Props) {
  const { t } = useTranslation();
  const emojis = useEmojis();
  const stamps = useOwnEmojis();
  const own = hasStamps ? stamps : [];
  const search = useRef<HTMLInputElement>(null);
  const [query, setQuery] = useState("");
  /** Number of the group that is shown; null for the frequent ones. */
  const [group, setGroup] = useState<number | null>(null);
  useEffect(() => {
    // On a touch screen, the focus would cover the picker with a keyboard.
    if (matchMedia("(pointer: fine)").matches) search.current?.focus();
  }, []);
  const shown = query.trim()
    ? findEmojis([...own, ...emojis], query)
    : group === null
      ? FREQUENT.map(
          (unicode) => emojis.find((each) => each.unicode === unicode) ?? { unicode, label: unicode },
        )
      : [...own, ...emojis].filter((each) => each.group === group);
  return (
    <div className="flex w-[21rem] max-w-full flex-col gap-2">
      <input
        ref={search}
        type="search"
        className="field"
        aria-label={t("emoji.search")}
        placeholder={t("emoji.search")}
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      {/* A new list begins at its first emoji. */}
      <EmojiGrid key={`${group} ${query}`} emojis={shown} onPick={onPick} />
      <div
        className="flex justify-between border-t border-line pt-1"
        role="toolbar"
        aria-label={t("emoji.groups")}
      >
        <GroupButton
          symbol="🕘"
          label={t("emoji.frequent")}
          isChosen={group === null}
          choose={() => choose(null)}
        />
        {own.length > 0 && (
          <GroupButton
            symbol="⭐"
            label={t("emoji.own")}
            isChosen={group === OWN_GROUP}
            choose={() => choose(OWN_GROUP)}
          />
        )}
        {GROUPS.map((each) => (
          <GroupButton
            key={each.group}
            symbol={each.symbol}
            label={t(each.textKey)}
            isChosen={group === each.group}
            choose={() => choose(each.group)}
          />
        ))}
      </div>
    </div>
  );

  function choose(chosen: number | null) {
    setGroup(chosen);
    setQuery("");
  }
}

/** Returns the stamps of the organization, which are emojis as well. */
function useOwnEmojis(): readonly Emoji[] {
  return useStampPacks().flatMap(({ stamps }) =>
    stamps.map(({ name, emoji, thumbnailUrl }) => ({
      unicode: emoji ?? name,
      label: name,
      group: OWN_GROUP,
      imageUrl: thumbnailUrl,
    })),
  );
}

function useEmojis(): readonly Emoji[] {
  const { language } = useTranslation();
  const [emojis, setEmojis] = useState<readonly Emoji[]>([]);
  useEffect(() => {
    let isCurrent = true;
    loadEmojis(language).then((loaded) => isCurrent && setEmojis(loaded), notifyFailure);
    return () => {
      isCurrent = false;
    };
  }, [language]);
  return emojis;
}

function EmojiGrid({ emojis, onPick }: { emojis: readonly Emoji[]; onPick: (emoji: string) => void }) {
  const { t } = useTranslation();
  const [current, setCurrent] = useState(0);
  function moveFocus(event: KeyboardEvent<HTMLElement>) {
    const next = current + (STEPS[event.key] ?? 0);
    if (!(event.key in STEPS) || next < 0 || next >= emojis.length) return;
    event.preventDefault();
    setCurrent(next);
    (event.currentTarget.children[next] as HTMLElement).focus();
  }
  return (
    <fieldset
      aria-label={t("emoji.emojis")}
      onKeyDown={moveFocus}
      className="thin-scroll grid h-56 grid-cols-8 content-start overflow-y-auto"
    >
      {emojis.map(({ unicode, label, imageUrl }, index) => (
        <button
          key={unicode}
          type="button"
          tabIndex={index === current ? 0 : -1}
          aria-label={label}
          title={label}
          className="size-10 rounded-lg text-xl hover:bg-hover"
          onFocus={() => setCurrent(index)}
          onClick={() => onPick(unicode)}
        >
          {imageUrl ? <StampImage path={imageUrl} name="" className="size-7" /> : unicode}
        </button>
      ))}
      {emojis.length === 0 && <p className="col-span-8 p-2 text-sm text-quiet">{t("emoji.none")}</p>}
    </fieldset>
  );
}

interface EmojiGroupProps {
  symbol: string;
  label: string;
  isChosen: boolean;
  choose: () => void;
}

function GroupButton({ symbol, label, isChosen, choose }: EmojiGroupProps) {
  return (
    <button
      type="button"
      aria-label={label}
      aria-pressed={isChosen}
      title={label}
      className="size-7 rounded-lg hover:bg-hover aria-pressed:bg-glow"
      onClick={choose}
    >
      {symbol}
    </button>
  );
}

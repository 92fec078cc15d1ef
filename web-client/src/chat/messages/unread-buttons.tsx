/** The buttons over a timeline that lead to its newest messages, and to unread messages above the window. */
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";

/** The server counts unread messages of a topic up to this number. */
const COUNTED_MAX = 100;

const countText = (count: number) => (count >= COUNTED_MAX ? `${COUNTED_MAX - 1}+` : count);

interface Props {
  count: number;
  onClick: () => void;
}

/** Leads to the newest messages, and names the number of those that the viewer has not seen. */
export function NewestButton({ count, onClick }: Props) {
  const { t } = useTranslation();
  return (
    <Button
      kind={count > 0 ? "main" : undefined}
      className="rise absolute bottom-4 left-1/2 whitespace-nowrap -translate-x-1/2 shadow-raised"
      onClick={onClick}
    >
      <Icon name="down" className="size-4" />
      {count > 0 && t("timeline.newCount", { count: countText(count) })}
      <span className={count > 0 ? "sr-only" : ""}>{t("timeline.newest")}</span>
    </Button>
  );
}

/** Leads to the unread messages that a link has skipped. */
export function UnreadAboveButton({ count, onClick }: Props) {
  const { t } = useTranslation();
  return (
    <Button
      className="absolute left-1/2 top-3 z-10 whitespace-nowrap -translate-x-1/2 bg-raised shadow-raised"
      onClick={onClick}
    >
      <Icon name="down" className="size-4 rotate-180" />
      {t("timeline.unreadAbove", { count: countText(count) })}
    </Button>
  );
}

/** The state of a post or publication: a colour, an icon and a label. */
import { Icon, type IconName } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import type { PostState } from "../operations";

const STATE_STYLES: Record<PostState, { icon: IconName; className: string }> = {
  SCHEDULED: { icon: "clock", className: "bg-glow text-accent border-accent" },
  PUBLISHING: { icon: "send", className: "bg-wait-ground text-wait border-wait" },
  PUBLISHED: { icon: "check", className: "bg-good-ground text-good border-good" },
  PARTIAL: { icon: "half", className: "bg-wait-ground text-wait border-wait" },
  FAILED: { icon: "alert", className: "bg-bad-ground text-bad border-bad" },
  UNKNOWN: { icon: "unknown", className: "bg-wait-ground text-wait border-wait" },
  CANCELLED: { icon: "ban", className: "bg-well text-quiet border-line" },
  NEEDS_ATTENTION: { icon: "lock", className: "bg-wait-ground text-wait border-wait" },
};

/** All states, most urgent first. The first four may need a person's action. */
export const URGENCY: readonly PostState[] = [
  "NEEDS_ATTENTION",
  "UNKNOWN",
  "FAILED",
  "PARTIAL",
  "PUBLISHING",
  "SCHEDULED",
  "PUBLISHED",
  "CANCELLED",
];

export function stateStyle(state: PostState): { icon: IconName; className: string } {
  return STATE_STYLES[state];
}

export function PostStateBadge({ state }: { state: PostState }) {
  const { t } = useTranslation();
  const { icon, className } = STATE_STYLES[state];
  return (
    <span
      data-state={state}
      className={`inline-flex shrink-0 items-center gap-1 rounded-full border px-2 py-0.5 text-xs font-medium ${className}`}
    >
      <Icon name={icon} className="size-3.5" />
      {t(`publishing.state.${state}`)}
    </span>
  );
}

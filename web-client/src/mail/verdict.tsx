/** A verdict: its rule, reason and counters. */
import { Badge } from "../ui/badge";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import type { VerdictRule } from "./operations";
import { type JudgedStanding, verdictLook } from "./verdict-look";

export function VerdictBadge({ standing }: { standing: JudgedStanding }) {
  const { t } = useTranslation();
  const { tone, icon, textKey } = verdictLook(standing);
  return (
    <Badge tone={tone}>
      <Icon name={icon} className="size-3" />
      {t(textKey)}
    </Badge>
  );
}

/**
 * The reason of a verdict: the server's text, in English. For a deliverable address or domain without bounces, a text
 * in the viewer's language.
 */
export function VerdictDetail({ verdict, cleanTextKey, bounceCount }: VerdictDetailProps) {
  const { t } = useTranslation();
  if (verdict.rule === "DELIVERABLE" && bounceCount === 0)
    return <p className="text-sm text-quiet">{t(cleanTextKey)}</p>;
  return (
    <p className="text-sm text-quiet" lang="en">
      {verdict.detail}
    </p>
  );
}

interface VerdictDetailProps {
  verdict: { rule: VerdictRule; detail: string };
  /**
   * The text when there is no bounce. The text for a domain does not mention complaints, because complaints are not
   * counted by domain.
   */
  cleanTextKey: "mail.noBounces" | "mail.noProblems";
  bounceCount: number;
}

interface DeliveryCounts {
  success: number;
  softBounce: number;
  hardBounce: number;
}

export function DeliveryCounters({ success, softBounce, hardBounce }: DeliveryCounts) {
  const { t, language } = useTranslation();
  const counts = [
    { word: "mail.success", count: success, colour: "text-good" },
    { word: "mail.soft", count: softBounce, colour: "text-wait" },
    { word: "mail.hard", count: hardBounce, colour: "text-bad" },
  ] as const;
  return (
    <dl className="flex gap-4 text-sm tabular-nums">
      {counts.map(({ word, count, colour }) => (
        <div key={word} className="flex gap-1.5">
          <dt className="text-quiet">{t(word)}</dt>
          <dd className={`font-semibold ${count > 0 ? colour : "text-quiet"}`}>
            {count.toLocaleString(language)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

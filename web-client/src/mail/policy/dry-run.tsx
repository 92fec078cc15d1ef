/** What a tried policy would change. Addresses that are not kept are shown by domain and the beginning of their hash. */
import { useTranslation } from "../../ui/preferences";
import type { DryRun } from "./operations";

const SHOWN_MAX = 50;
const HASH_DIGITS = 10;

export function DryRunResult({ dryRun }: { dryRun: DryRun }) {
  const { t } = useTranslation();
  const { checked, blocked, freed, changes, nextAfter } = dryRun;
  return (
    <section aria-label={t("policy.tried")} data-testid="dry-run">
      <h2 className="text-lg font-semibold">{t("policy.tried")}</h2>
      <div role="status">
        <p className="text-quiet">{t("policy.checked", { count: checked })}</p>
        {blocked + freed === 0 ? (
          <p>{t("policy.noChanges")}</p>
        ) : (
          <p className="flex flex-wrap gap-x-6 font-semibold tabular-nums">
            <span className={blocked > 0 ? "text-bad" : ""}>
              {t("policy.newlyBlocked", { count: blocked })}
            </span>
            <span className={freed > 0 ? "text-good" : ""}>{t("policy.freed", { count: freed })}</span>
          </p>
        )}
        {nextAfter !== null && <p className="text-sm text-wait">{t("policy.more")}</p>}
      </div>
      <ul className="mt-2">
        {changes.slice(0, SHOWN_MAX).map(({ addressHash, domain, address, before, after }) => (
          <li key={addressHash} className="flex flex-wrap gap-x-4 border-t border-line py-1.5">
            <span className="min-w-0 grow truncate">
              {address ?? (
                <>
                  {domain}{" "}
                  <span className="font-mono text-sm text-quiet">{addressHash.slice(0, HASH_DIGITS)}</span>
                </>
              )}
            </span>
            <span>
              {t(`verdict.${before.rule}`)} → {t(`verdict.${after.rule}`)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

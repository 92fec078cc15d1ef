/** How long the organization keeps each kind of data, for administrators. */
import { useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { relativeTime } from "../i18n/times";
import { Button } from "../ui/button";
import { useTranslation } from "../ui/preferences";
import { notifyFailure } from "../ui/toasts";
import { RetentionDialog } from "./retention-dialog";
import { type RetentionRule, RetentionRules } from "./retention-operations";
import { useLifetimeText } from "./use-lifetime-text";

export function RetentionSection() {
  const { t } = useTranslation();
  const [rules, setRules] = useRules();
  const [changing, setChanging] = useState<RetentionRule | null>(null);
  return (
    <section aria-labelledby="retention" className="mt-10">
      <h2 id="retention" className="border-b border-line pb-3 text-lg font-semibold">
        {t("retention.title")}
      </h2>
      <p className="mt-3 text-quiet">{t("retention.hint")}</p>
      <ul>
        {rules.map((rule) => (
          <RuleRow key={rule.data} rule={rule} onChange={() => setChanging(rule)} />
        ))}
      </ul>
      {changing && (
        <RetentionDialog
          rule={changing}
          onClose={() => setChanging(null)}
          onChanged={(changed) => {
            setChanging(null);
            setRules(rules.map((rule) => (rule.data === changed.data ? changed : rule)));
          }}
        />
      )}
    </section>
  );
}

function RuleRow({ rule, onChange }: { rule: RetentionRule; onChange: () => void }) {
  const { t, language } = useTranslation();
  const lifetimeText = useLifetimeText();
  const { data, days, setAt, setBy } = rule;
  const name = t(`retention.${data}`);
  const time = setAt && relativeTime(language, new Date(setAt), new Date());
  return (
    <li data-retention={data} className="flex items-center gap-4 border-b border-line py-3">
      <div className="min-w-0 grow">
        <p className="font-semibold">{name}</p>
        <p>{lifetimeText(days)}</p>
        <p className="text-sm text-quiet">{t(`retention.${data}.hint`)}</p>
        {setBy && time && (
          <p className="text-sm text-quiet">{t("retention.setBy", { name: setBy.name, time })}</p>
        )}
      </div>
      <Button className="shrink-0" onClick={onChange} aria-label={t("retention.changeNamed", { name })}>
        {t("retention.change")}
      </Button>
    </li>
  );
}

/** Returns the rules, none before they are loaded, and a function that replaces them. */
function useRules() {
  const { direct } = useApi();
  const [rules, setRules] = useState<readonly RetentionRule[]>([]);
  useEffect(() => {
    request(direct, RetentionRules, {}).then(({ retentionRules }) => setRules(retentionRules), notifyFailure);
  }, [direct]);
  return [rules, setRules] as const;
}

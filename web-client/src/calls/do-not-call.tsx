/** The do-not-call list: check, add and remove numbers. */
import { useState } from "react";
import { ask, useApi } from "../api/api";
import { failureWord, rejectionText } from "../api/failure";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { LabelledField } from "../ui/labelled-field";
import { useWords } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { AddDoNotCall, DoNotCall, RemoveDoNotCall } from "./operations";

interface Standing {
  number: string;
  listed: boolean;
}

export function DoNotCallList() {
  const { t } = useWords();
  const { direct } = useApi();
  const [text, setText] = useState("");
  const [standings, setStandings] = useState<readonly Standing[]>([]);
  const [refusal, setRefusal] = useState<string | null>(null);
  const numbers = text
    .split(/[\n,;]+/)
    .map((number) => number.trim())
    .filter(Boolean);

  async function doing(change: (() => Promise<void>) | null) {
    try {
      await change?.();
      const { doNotCall } = await ask(direct, DoNotCall, { numbers });
      setStandings(numbers.map((number, place) => ({ number, listed: doNotCall[place] ?? false })));
      setRefusal(null);
    } catch (error) {
      setRefusal(rejectionText(error) ?? t(failureWord(error)));
    }
  }
  const add = async () =>
    notify(t("callRules.dncAdded", { count: (await ask(direct, AddDoNotCall, { numbers })).count }));
  const remove = async () =>
    notify(t("callRules.dncRemoved", { count: (await ask(direct, RemoveDoNotCall, { numbers })).count }));

  return (
    <section aria-labelledby="do-not-call">
      <h2 id="do-not-call" className="font-semibold">
        {t("callRules.dnc")}
      </h2>
      <p className="mb-4 text-sm text-quiet">{t("callRules.dncHint")}</p>
      <LabelledField label={t("callRules.dncNumbers")}>
        {(props) => (
          <textarea
            {...props}
            className="field thin-scroll field-sizing-content max-h-60 min-h-24 font-mono text-sm"
            placeholder={"+819012345678\n+815012345680"}
            spellCheck={false}
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setStandings([]);
            }}
          />
        )}
      </LabelledField>
      <div className="mt-3 flex flex-wrap gap-2">
        <Button disabled={numbers.length === 0} onClick={() => doing(null)}>
          {t("callRules.dncCheck")}
        </Button>
        <Button kind="bad" disabled={numbers.length === 0} onClick={() => doing(add)}>
          {t("callRules.dncAdd")}
        </Button>
        <Button disabled={numbers.length === 0} onClick={() => doing(remove)}>
          {t("callRules.dncRemove")}
        </Button>
      </div>
      {refusal && (
        <p role="alert" className="mt-3 text-bad">
          {refusal}
        </p>
      )}
      {standings.length > 0 && (
        <ul className="mt-4 divide-y divide-line rounded-xl border border-line">
          {standings.map(({ number, listed }) => (
            <li key={number} className="flex items-center justify-between gap-3 px-3 py-2">
              <span className="truncate tabular-nums">{number}</span>
              <Badge tone={listed ? "bad" : "good"}>
                {t(listed ? "callRules.dncListed" : "callRules.dncFree")}
              </Badge>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The do-not-call list: check, add and remove numbers. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { LabelledField } from "../ui/fields/labelled-field";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { AddDoNotCall, DoNotCall, RemoveDoNotCall } from "./operations";

interface CheckedNumber {
  number: string;
  isListed: boolean;
}

export function DoNotCallList() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [text, setText] = useState("");
  const [checkedNumbers, setCheckedNumbers] = useState<readonly CheckedNumber[]>([]);
  const [errorText, setErrorText] = useState<string | null>(null);
  const typedNumbers = text.split(/[\n,;]+/).map((number) => number.trim());
  const numbers = [...new Set(typedNumbers.filter(Boolean))];

  /** Runs a change, if any, then requests which of the entered numbers are on the list. */
  async function changeAndCheck(change: (() => Promise<void>) | null) {
    try {
      await change?.();
      const { doNotCall } = await request(direct, DoNotCall, { numbers });
      setCheckedNumbers(numbers.map((number, index) => ({ number, isListed: doNotCall[index] ?? false })));
      setErrorText(null);
    } catch (error) {
      setErrorText(rejectionText(error) ?? t(failureTextKey(error)));
    }
  }
  const add = async () =>
    notify(t("callRules.dncAdded", { count: (await request(direct, AddDoNotCall, { numbers })).count }));
  const remove = async () =>
    notify(t("callRules.dncRemoved", { count: (await request(direct, RemoveDoNotCall, { numbers })).count }));

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
              setCheckedNumbers([]);
            }}
          />
        )}
      </LabelledField>
      <div className="mt-3 flex flex-wrap gap-2">
        <Button disabled={numbers.length === 0} onClick={() => changeAndCheck(null)}>
          {t("callRules.dncCheck")}
        </Button>
        <Button kind="bad" disabled={numbers.length === 0} onClick={() => changeAndCheck(add)}>
          {t("callRules.dncAdd")}
        </Button>
        <Button disabled={numbers.length === 0} onClick={() => changeAndCheck(remove)}>
          {t("callRules.dncRemove")}
        </Button>
      </div>
      {errorText && (
        <p role="alert" className="mt-3 text-bad">
          {errorText}
        </p>
      )}
      {checkedNumbers.length > 0 && (
        <ul className="mt-4 divide-y divide-line rounded-xl border border-line">
          {checkedNumbers.map(({ number, isListed }) => (
            <li key={number} className="flex items-center justify-between gap-3 px-3 py-2">
              <span className="truncate tabular-nums">{number}</span>
              <Badge tone={isListed ? "bad" : "good"}>
                {t(isListed ? "callRules.dncListed" : "callRules.dncFree")}
              </Badge>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Looks up 1,000 addresses or fewer: whether mail may be sent to each, and why. Sendable addresses can be copied. */
import { type FormEvent, useState } from "react";
import { request, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import type { TextKey } from "../i18n/texts";
import { mayOperate } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { Button } from "../ui/button";
import { LabelledField } from "../ui/fields/labelled-field";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { EmptyState } from "../ui/states";
import { notify } from "../ui/toasts";
import { AddressRow } from "./address-row";
import { addressesIn, LOOKUP_MAX } from "./addresses";
import { DecideTogether } from "./decide-together";
import { AddressBook, type AddressStanding } from "./operations";

export function AddressLookup() {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [text, setText] = useState("");
  const [isLoading, setIsLoading] = useState(false);
  const [rejection, setRejection] = useState<string | null>(null);
  const [standings, setStandings] = useState<readonly AddressStanding[] | null>(null);
  const addresses = addressesIn(text);
  const mayDecide = mayOperate(useViewer().roles);

  async function lookUp(event: FormEvent) {
    event.preventDefault();
    if (addresses.length === 0 || addresses.length > LOOKUP_MAX) return;
    setIsLoading(true);
    try {
      setStandings((await request(direct, AddressBook, { addresses })).addressBook);
      setRejection(null);
    } catch (error) {
      setRejection(rejectionText(error) ?? t(failureTextKey(error)));
    }
    setIsLoading(false);
  }

  function replace(updated: readonly AddressStanding[]) {
    const updatedByAddress = new Map(updated.map((standing) => [standing.address, standing]));
    setStandings(
      (current) => current?.map((standing) => updatedByAddress.get(standing.address) ?? standing) ?? null,
    );
  }

  return (
    <>
      <form onSubmit={lookUp} className="flex flex-col gap-3">
        <LabelledField label={t("mail.paste")} hint={t("mail.pasteHint")}>
          {(props) => (
            <textarea
              {...props}
              className="field thin-scroll field-sizing-content max-h-52 min-h-24 font-mono text-sm"
              spellCheck={false}
              autoCapitalize="off"
              placeholder={"ann@example.org\nBen Lee <ben@example.com>"}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </LabelledField>
        <div className="flex items-center justify-end gap-3">
          <span
            className={`text-sm tabular-nums ${addresses.length > LOOKUP_MAX ? "text-bad" : "text-quiet"}`}
          >
            {addresses.length > LOOKUP_MAX
              ? t("mail.tooMany", { count: addresses.length })
              : addresses.length > 0 && t("mail.count", { count: addresses.length })}
          </span>
          <Button
            type="submit"
            kind="main"
            disabled={isLoading || addresses.length === 0 || addresses.length > LOOKUP_MAX}
          >
            <Icon name="search" className="size-4" />
            {t("mail.look")}
          </Button>
        </div>
        {rejection && (
          <p role="alert" className="text-bad">
            {rejection}
          </p>
        )}
      </form>
      {mayDecide && <DecideTogether addresses={addresses} onDecided={setStandings} />}
      {standings ? (
        <AddressStandings standings={standings} replace={replace} />
      ) : (
        <EmptyState icon="mail" title={t("mail.none")} hint={t("mail.noneHint")} />
      )}
    </>
  );
}

const FILTERS: {
  name: "all" | "blocked" | "sendable";
  textKey: TextKey;
  includes: (standing: AddressStanding) => boolean;
}[] = [
  { name: "all", textKey: "mail.all", includes: () => true },
  { name: "blocked", textKey: "mail.blocked", includes: ({ blocked }) => blocked },
  { name: "sendable", textKey: "mail.sendable", includes: ({ blocked }) => !blocked },
];

interface AddressStandingsProps {
  standings: readonly AddressStanding[];
  replace: (updated: readonly AddressStanding[]) => void;
}

function AddressStandings({ standings, replace }: AddressStandingsProps) {
  const { t, language } = useTranslation();
  const [filter, setFilter] = useState(FILTERS[0]?.name);
  const isShown = FILTERS.find(({ name }) => name === filter)?.includes ?? (() => true);
  const sendable = standings.filter(({ blocked }) => !blocked);

  const addressesOfDomain = (domain: string) =>
    standings.filter((standing) => standing.domain?.domain === domain).map(({ address }) => address);

  function copy() {
    const text = sendable.map(({ normalized, address }) => normalized ?? address).join("\n");
    navigator.clipboard.writeText(text).then(
      () => notify(t("mail.copied", { count: sendable.length })),
      () => notify(t("mail.notCopied")),
    );
  }

  return (
    <section aria-label={t("mail.result")} className="mt-8" data-testid="standings">
      <div className="flex flex-wrap items-center gap-1.5 border-b border-line pb-3">
        {FILTERS.map(({ name, textKey, includes }) => (
          <button
            key={name}
            type="button"
            aria-pressed={filter === name}
            onClick={() => setFilter(name)}
            className="inline-flex min-h-9 items-center gap-2 rounded-full border border-line px-3 text-sm hover:bg-hover aria-pressed:border-accent aria-pressed:bg-glow"
          >
            {t(textKey)}
            <span className="font-semibold tabular-nums">
              {standings.filter(includes).length.toLocaleString(language)}
            </span>
          </button>
        ))}
        <span className="grow" />
        <Button disabled={sendable.length === 0} onClick={copy}>
          <Icon name="copy" className="size-4" />
          {t("mail.copy", { count: sendable.length })}
        </Button>
      </div>
      <ul>
        {standings.filter(isShown).map((standing) => (
          <AddressRow
            key={standing.address}
            standing={standing}
            replace={replace}
            addressesOfDomain={addressesOfDomain}
          />
        ))}
      </ul>
    </section>
  );
}

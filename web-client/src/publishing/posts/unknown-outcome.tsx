/** What a person looks for at the account of a publication whose outcome is unknown, and the buttons that answer. */
import { type ReactNode, useState } from "react";
import { request, useApi } from "../../api/api";
import { LIMITS } from "../../api/limits";
import { Button } from "../../ui/button";
import { useLength } from "../../ui/fields/length";
import { useTranslation } from "../../ui/preferences";
import { notifyFailure } from "../../ui/toasts";
import { instantText } from "../local-times";
import { type OutcomeCheck, type Publication, ResolvePublication } from "../operations";
import { foundPost, type OutcomeAnswer } from "./outcome-answer";

interface Props {
  publication: Publication;
  zone: string;
  refresh: () => void;
}

export function UnknownOutcome({ publication, zone, refresh }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [found, setFound] = useState("");
  const [isSaving, setIsSaving] = useState(false);
  const length = useLength(found, LIMITS.externalId);
  const { id, outcomeCheck } = publication;
  async function answer(content: OutcomeAnswer) {
    setIsSaving(true);
    const lastCallAt = outcomeCheck?.lastCallAt ?? null;
    // The same answer about the same call has the same key, so a repetition after a lost response changes nothing.
    const key = [id, lastCallAt, content.published, content.publishAgain].join(" ");
    const variables = { id, ...content, lastCallAt, key };
    await request(direct, ResolvePublication, variables).catch(notifyFailure);
    setIsSaving(false);
    refresh();
  }
  return (
    <div className="mt-2 flex flex-col gap-2 rounded-lg bg-wait-ground p-3 text-sm">
      <p>{t("publishing.unknownHint")}</p>
      {outcomeCheck && <CheckList check={outcomeCheck} zone={zone} />}
      <input
        className="field text-sm"
        aria-label={t("publishing.foundPost")}
        placeholder={t("publishing.foundPost")}
        value={found}
        onChange={(event) => setFound(event.target.value)}
        {...length.fieldProps}
      />
      {length.note}
      <div className="flex flex-wrap gap-2">
        <Button
          disabled={isSaving || length.isTooLong}
          onClick={() => answer({ published: true, publishAgain: false, ...foundPost(found) })}
        >
          {t("publishing.isThere")}
        </Button>
        <Button disabled={isSaving} onClick={() => answer({ published: false, publishAgain: true })}>
          {t("publishing.publishAgain")}
        </Button>
        <Button disabled={isSaving} onClick={() => answer({ published: false, publishAgain: false })}>
          {t("publishing.isNotThere")}
        </Button>
      </div>
    </div>
  );
}

function CheckList({ check, zone }: { check: OutcomeCheck; zone: string }) {
  const { t, language } = useTranslation();
  const { account, profileUrl, textStart, firstCallAt, lastCallAt, nextLookupAt } = check;
  const timeOf = (instant: string) => instantText(language, zone, new Date(instant));
  const [first, last] = [timeOf(firstCallAt), timeOf(lastCallAt)];
  return (
    <>
      <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1">
        <CheckItem label={t("publishing.check.account")}>
          {account.name} ({t(`publishing.network.${account.network}`)}){" "}
          {profileUrl && (
            <a href={profileUrl} target="_blank" rel="noreferrer noopener" className="text-accent underline">
              {t("publishing.check.profile")}
            </a>
          )}
        </CheckItem>
        <CheckItem label={t("publishing.check.time")}>
          {first === last ? first : t("publishing.check.times", { first, last })}
        </CheckItem>
        {textStart && <CheckItem label={t("publishing.check.text")}>{textStart}</CheckItem>}
      </dl>
      {nextLookupAt && (
        <p className="text-quiet">{t("publishing.check.next", { time: timeOf(nextLookupAt) })}</p>
      )}
    </>
  );
}

function CheckItem({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-quiet">{label}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  );
}

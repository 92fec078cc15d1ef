/** Who set a version of the mail policy, when and why. */
import { useEffect, useState } from "react";
import { request, useApi } from "../../api/api";
import { dateAndTime } from "../../i18n/times";
import { useTranslation } from "../../ui/preferences";
import { notifyFailure } from "../../ui/toasts";
import { formOf } from "./form";
import { type MailPolicy, PolicyVersions } from "./operations";
import { PolicyFields } from "./policy-fields";

export function PolicyOrigin({ policy }: { policy: MailPolicy }) {
  const { t, language } = useTranslation();
  const { version, setAt, setBy, reason } = policy;
  const time = setAt && dateAndTime(language, new Date(setAt));
  return (
    <div data-testid="policy-origin">
      <p className="font-semibold">{t("policy.version", { version })}</p>
      {reason && <p className="break-words">{reason}</p>}
      <p className="text-sm text-quiet">
        {!time && t("policy.default")}
        {time && setBy && t("policy.setBy", { name: setBy.name, time })}
        {time && !setBy && t("policy.setByNobody", { time })}
      </p>
    </div>
  );
}

/** The versions that were set, the newest first. `presentVersion` loads them again when it changes. */
export function PolicyVersionList({ presentVersion }: { presentVersion: number }) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [versions, setVersions] = useState<readonly MailPolicy[] | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version is loaded.
  useEffect(() => {
    request(direct, PolicyVersions, {}).then(
      ({ mailPolicyVersions }) => setVersions(mailPolicyVersions),
      notifyFailure,
    );
  }, [direct, presentVersion]);
  return (
    <section aria-labelledby="policy-versions" className="mt-10">
      <h2 id="policy-versions" className="border-b border-line pb-3 text-lg font-semibold">
        {t("policy.versions")}
      </h2>
      {versions?.length === 0 && <p className="py-3 text-quiet">{t("policy.noVersions")}</p>}
      <ol>
        {versions?.map((policy) => (
          <li key={policy.version} className="border-b border-line py-3">
            <PolicyOrigin policy={policy} />
            <details>
              <summary className="text-sm text-quiet">{t("mail.table")}</summary>
              <PolicyFields form={formOf(policy)} />
            </details>
          </li>
        ))}
      </ol>
    </section>
  );
}

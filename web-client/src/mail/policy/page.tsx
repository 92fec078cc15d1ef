/** The organization's mail policy, which operators change after they have tried it, and its versions. */
import { useCallback, useEffect, useState } from "react";
import { request, useApi } from "../../api/api";
import { mayOperate } from "../../session/permissions";
import { useViewer } from "../../session/viewer";
import { useTranslation } from "../../ui/preferences";
import { ErrorState, LoadingState } from "../../ui/states";
import { PolicyEditor } from "./editor";
import { formOf } from "./form";
import { type MailPolicy, PresentPolicy } from "./operations";
import { PolicyFields } from "./policy-fields";
import { PolicyOrigin, PolicyVersionList } from "./versions";

export function PolicyPage() {
  const { t } = useTranslation();
  const mayChange = mayOperate(useViewer().roles);
  const { policy, error, load, setPolicy } = usePolicy();
  if (error !== null && !policy) return <ErrorState error={error} retry={load} />;
  if (!policy) return <LoadingState rows={6} />;
  return (
    <>
      <PolicyOrigin policy={policy} />
      {mayChange ? (
        <PolicyEditor policy={policy} load={load} onSet={setPolicy} />
      ) : (
        <>
          <p className="my-3 text-quiet">{t("policy.readOnly")}</p>
          <PolicyFields form={formOf(policy)} />
        </>
      )}
      {mayChange && <PolicyVersionList presentVersion={policy.version} />}
    </>
  );
}

/** Returns the present policy; null before it is loaded. `load` loads it again. */
function usePolicy() {
  const { direct } = useApi();
  const [policy, setPolicy] = useState<MailPolicy | null>(null);
  const [error, setError] = useState<unknown>(null);
  const load = useCallback(async () => {
    try {
      setPolicy((await request(direct, PresentPolicy, {})).mailPolicy);
      setError(null);
    } catch (failure) {
      setError(failure);
    }
  }, [direct]);
  useEffect(() => void load(), [load]);
  return { policy, error, load, setPolicy };
}

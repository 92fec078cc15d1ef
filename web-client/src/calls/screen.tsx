/** The calls screens: the job list beside one job, a new list, or the limits and the do-not-call list. */
import { useEffect, useState } from "react";
import { useApi } from "../api/api";
import type { CallsRoute } from "../app/router";
import { mayOperate } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { useTranslation } from "../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../ui/states";
import { useValue } from "../ui/value";
import { type CallStore, CallStoreProvider, openCallStore } from "./call-store";
import { JobList } from "./job-list";
import { JobPane } from "./job-pane";
import { NewCallListForm } from "./lists/new-list";
import { CallRules } from "./rules";

export function CallsScreen({ route }: { route: CallsRoute }) {
  const { t } = useTranslation();
  const { roles } = useViewer();
  if (!mayOperate(roles))
    return (
      <div className="h-full overflow-y-auto">
        <h1 className="sr-only">{t("calls")}</h1>
        <EmptyState icon="phone" title={t("calls.forbidden")} hint={t("calls.forbiddenHint")} />
      </div>
    );
  return <CallsWorkspace route={route} />;
}

function CallsWorkspace({ route }: { route: CallsRoute }) {
  const api = useApi();
  const [store, setStore] = useState<CallStore | null>(null);
  useEffect(() => {
    const newStore = openCallStore(api);
    setStore(newStore);
    return newStore.stop;
  }, [api]);
  if (!store) return <LoadingState />;
  return (
    <CallStoreProvider value={store}>
      <CallsPanes store={store} route={route} />
    </CallStoreProvider>
  );
}

function CallsPanes({ store, route }: { store: CallStore; route: CallsRoute }) {
  const subscriptionError = useValue(store.subscriptionError);
  if (subscriptionError) return <ErrorState error={subscriptionError} />;
  const isListOnly = route.name === "calls";
  return (
    <div className="flex h-full min-h-0">
      <div
        className={`w-full shrink-0 border-r border-line bg-well md:w-72 xl:w-80 ${isListOnly ? "" : "max-md:hidden"}`}
      >
        <JobList route={route} />
      </div>
      <div className={`min-w-0 grow ${isListOnly ? "max-md:hidden" : ""}`}>
        <CallsContents route={route} />
      </div>
    </div>
  );
}

function CallsContents({ route }: { route: CallsRoute }) {
  const { t } = useTranslation();
  switch (route.name) {
    case "callJob":
      return <JobPane key={route.id} id={route.id} />;
    case "newCallJob":
      return <NewCallListForm />;
    case "callRules":
      return <CallRules />;
    default:
      return <EmptyState icon="phone" title={t("calls.choose")} hint={t("calls.chooseHint")} />;
  }
}

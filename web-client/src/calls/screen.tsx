/** The calls screens: the job list beside one job, a new list, or the limits. */
import { useEffect, useState } from "react";
import { useApi } from "../api/api";
import type { CallsPlace } from "../app/router";
import { mayOperate } from "../session/permissions";
import { useViewer } from "../session/viewer";
import { useTranslation } from "../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../ui/states";
import { useValue } from "../ui/value";
import { type CallStore, CallStoreProvider, openCallStore } from "./call-store";
import { JobList } from "./job-list";
import { JobPane } from "./job-pane";
import { NewList } from "./new-list";
import { Rules } from "./rules";

export function CallsScreen({ place }: { place: CallsPlace }) {
  const { t } = useTranslation();
  const { roles } = useViewer();
  if (!mayOperate(roles))
    return (
      <div className="h-full overflow-y-auto">
        <h1 className="sr-only">{t("calls")}</h1>
        <EmptyState icon="phone" title={t("calls.forbidden")} hint={t("calls.forbiddenHint")} />
      </div>
    );
  return <CallsWorkspace place={place} />;
}

function CallsWorkspace({ place }: { place: CallsPlace }) {
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
      <Panes store={store} place={place} />
    </CallStoreProvider>
  );
}

function Panes({ store, place }: { store: CallStore; place: CallsPlace }) {
  const subscriptionError = useValue(store.subscriptionError);
  if (subscriptionError) return <ErrorState error={subscriptionError} />;
  const isListOnly = place.name === "calls";
  return (
    <div className="flex h-full min-h-0">
      <div
        className={`w-full shrink-0 border-r border-line bg-well md:w-72 xl:w-80 ${isListOnly ? "" : "max-md:hidden"}`}
      >
        <JobList place={place} />
      </div>
      <div className={`min-w-0 grow ${isListOnly ? "max-md:hidden" : ""}`}>
        <Contents place={place} />
      </div>
    </div>
  );
}

function Contents({ place }: { place: CallsPlace }) {
  const { t } = useTranslation();
  switch (place.name) {
    case "callJob":
      return <JobPane key={place.id} id={place.id} />;
    case "newCallJob":
      return <NewList />;
    case "callRules":
      return <Rules />;
    default:
      return <EmptyState icon="phone" title={t("calls.choose")} hint={t("calls.chooseHint")} />;
  }
}

/** Loads the script of a screen on first use. */
import { type ComponentType, type ReactNode, useEffect, useState } from "react";
import { ErrorState, LoadingState } from "../ui/states";

export const LOAD_FAILURE = { networkError: true };

/** Returns a dialog that is loaded when it is first opened. */
export const lazyDialog = <Props extends object>(load: () => Promise<ComponentType<Props>>) =>
  lazyScreen(load, null);

/**
 * Returns a component that calls `load` when it is first rendered, and shows `fallback` meanwhile. The user can retry a
 * failed load.
 */
export function lazyScreen<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  fallback: ReactNode = <LoadingState />,
): ComponentType<Props> {
  const useLoaded = lazyModule(load);
  return function LazyScreen(props: Props) {
    const { module: Loaded, retry } = useLoaded();
    if (retry) return <ErrorState error={LOAD_FAILURE} retry={retry} />;
    return Loaded ? <Loaded {...props} /> : fallback;
  };
}

/**
 * Returns a hook that calls `load` when it is first rendered. The hook returns what was loaded, which is null until
 * then, and a function that tries again, which is null unless the load has failed.
 */
export function lazyModule<Module>(load: () => Promise<Module>) {
  let cached: Module | null = null;
  return function useModule() {
    const [module, setModule] = useState(() => cached);
    const [hasFailed, setHasFailed] = useState(false);
    useEffect(() => {
      if (module || hasFailed) return;
      load().then(
        (loaded) => {
          cached = loaded;
          setModule(() => loaded);
        },
        () => setHasFailed(true),
      );
    }, [module, hasFailed]);
    return { module, retry: hasFailed ? () => setHasFailed(false) : null };
  };
}

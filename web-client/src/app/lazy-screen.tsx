/** Loads the script of a screen on first use. */
import { type ComponentType, type ReactNode, useEffect, useState } from "react";
import { ErrorState, LoadingState } from "../ui/states";

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
  let cachedComponent: ComponentType<Props> | null = null;
  return function LazyScreen(props: Props) {
    const [Loaded, setLoaded] = useState(() => cachedComponent);
    const [hasFailed, setHasFailed] = useState(false);
    useEffect(() => {
      if (Loaded || hasFailed) return;
      load().then(
        (component) => {
          cachedComponent = component;
          setLoaded(() => component);
        },
        () => setHasFailed(true),
      );
    }, [Loaded, hasFailed]);
    if (hasFailed) return <ErrorState error={{ networkError: true }} retry={() => setHasFailed(false)} />;
    return Loaded ? <Loaded {...props} /> : fallback;
  };
}

/** Loads the script of a screen on first use. */
import { type ComponentType, useEffect, useState } from "react";
import { ErrorState, LoadingState } from "../ui/states";

/** Returns a component that calls `load` when it is first rendered. The user can retry a failed load. */
export function lazyScreen<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
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
    return Loaded ? <Loaded {...props} /> : <LoadingState />;
  };
}

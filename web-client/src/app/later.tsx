/** A screen whose script is loaded on first use. */
import { type ComponentType, useEffect, useState } from "react";
import { Failed, Loading } from "../ui/states";

/** `load` fetches the script; a failed fetch can be retried. */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let known: ComponentType<Props> | null = null;
  return function Later(props: Props) {
    const [Loaded, setLoaded] = useState(() => known);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (Loaded || failed) return;
      load().then(
        (component) => {
          known = component;
          setLoaded(() => component);
        },
        () => setFailed(true),
      );
    }, [Loaded, failed]);
    if (failed) return <Failed error={{ networkError: true }} again={() => setFailed(false)} />;
    return Loaded ? <Loaded {...props} /> : <Loading />;
  };
}

/** Tells a component whether the window is wide enough for a layout. */
import { useMemo, useSyncExternalStore } from "react";

/** Widths of the window from which on layouts change, as Tailwind's `md` and `lg` have them. */
export const MEDIUM = "48rem";
export const LARGE = "64rem";

/** Returns whether the window has at least this width, and renders the component again when that changes. */
export function useIsAtLeast(width: string): boolean {
  const [watch, matches] = useMemo(() => {
    const query = matchMedia(`(min-width: ${width})`);
    const watchQuery = (listener: () => void) => {
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    };
    return [watchQuery, () => query.matches] as const;
  }, [width]);
  return useSyncExternalStore(watch, matches);
}

/** Drafts: contents that stay in a field through reloads, other screens and the expiry of a token. */
import { useCallback, useState } from "react";
import { DRAFT, useUserStorage } from "./user-storage";

interface DraftState<T> {
  draft: T;
  /** Whether the draft is kept: from the first change on, until it is discarded or is an empty text. */
  isKept: boolean;
  /** Whether the draft was kept before the field appeared. */
  isRestored: boolean;
  setDraft(draft: T): void;
  /** Removes the kept draft, and returns to the initial value. */
  discardDraft(): void;
}

/**
 * Returns the viewer's draft of a field. `isDraft` checks the kept value, because an earlier version of the client may
 * have stored it in another form.
 */
export function useDraft<T>(
  field: string,
  initial: T,
  isDraft: (value: unknown) => value is T,
): DraftState<T> {
  const storage = useUserStorage();
  const name = DRAFT + field;
  const [state, setState] = useState(() => {
    const kept = storage.get(name);
    const isRestored = isDraft(kept);
    return { draft: isRestored ? kept : initial, isKept: isRestored, isRestored };
  });
  const setDraft = useCallback(
    (draft: T) => {
      if (draft === "") storage.remove(name);
      else storage.set(name, draft);
      setState(({ isRestored }) => ({ draft, isKept: draft !== "", isRestored }));
    },
    [storage, name],
  );
  const discardDraft = () => {
    storage.remove(name);
    setState({ draft: initial, isKept: false, isRestored: false });
  };
  return { ...state, setDraft, discardDraft };
}

export const isText = (value: unknown): value is string => typeof value === "string";

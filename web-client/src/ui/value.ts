/** An observable value that is stored outside of React components. */
import { useSyncExternalStore } from "react";

export interface ObservableValue<T> {
  get(): T;
  set(value: T): void;
  /** Calls the listener after each change. Returns a function that removes the listener. */
  watch(listener: () => void): () => void;
}

export function createValue<T>(initial: T): ObservableValue<T> {
  let current = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => current,
    set(value) {
      if (Object.is(value, current)) return;
      current = value;
      for (const listener of listeners) listener();
    },
    /** Calls the listener after each change. Returns a function that removes the listener. */
    watch(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useValue<T>(value: ObservableValue<T>): T {
  return useSyncExternalStore(value.watch, value.get);
}

/** Lets a message row open the thread of its message. */
import { createContext, useContext } from "react";
import type { Message } from "../operations";

const ThreadOpenerContext = createContext<((message: Message) => void) | null>(null);
export const ThreadOpenerProvider = ThreadOpenerContext.Provider;

/** Returns the function that opens a thread; null where messages have no threads. */
export function useThreadOpener() {
  return useContext(ThreadOpenerContext);
}

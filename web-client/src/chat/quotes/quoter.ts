/** Lets a message row make its message the quoted one of the message field. */
import { createContext, useContext } from "react";
import type { Message } from "../operations";

const QuoterContext = createContext<((message: Message) => void) | null>(null);
export const QuoterProvider = QuoterContext.Provider;

/** Returns the function that quotes a message; null where the viewer cannot write. */
export function useQuoter() {
  return useContext(QuoterContext);
}

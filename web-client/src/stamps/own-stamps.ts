/** The stamps of the viewer's organization, which are loaded once and shared by all who show them. */
import { useEffect } from "react";
import { useQuery } from "urql";
import {
  type OwnStamp,
  type StampPack,
  StampPackProgress,
  StampPacks,
  type StampPackWithProgress,
} from "./operations";

/** An unknown name makes the client load the packs again, at most once in this time. */
const RELOAD_MS = 60_000;
let reloadedAt_ms = 0;

/** Returns the packs that the viewer may use and that have stamps; none until they are loaded. */
export function useStampPacks(): readonly StampPack[] {
  const [{ data }] = useQuery({ query: StampPacks });
  return data?.stampPacks.filter(({ stamps, owned }) => owned && stamps.length > 0) ?? [];
}

/** Loads the packs with the viewer's progress, also those that the viewer does not own. */
export function useAllStampPacks(): readonly StampPackWithProgress[] {
  const [{ data }] = useQuery({ query: StampPackProgress, requestPolicy: "cache-and-network" });
  return data?.stampPacks.filter(({ stamps }) => stamps.length > 0) ?? [];
}

/** Returns the stamp of a reaction such as ":lit:"; null for a stamp that was removed or is not loaded. */
export function useStampOf(emoji: string): OwnStamp | null {
  const [{ data, fetching }, reload] = useQuery({ query: StampPacks });
  const stamp = data?.stampPacks.flatMap(({ stamps }) => stamps).find((each) => each.emoji === emoji) ?? null;
  const isUnknown = data !== undefined && !fetching && stamp === null;
  useEffect(() => {
    if (!isUnknown || Date.now() - reloadedAt_ms < RELOAD_MS) return;
    reloadedAt_ms = Date.now();
    reload({ requestPolicy: "network-only" });
  }, [isUnknown, reload]);
  return stamp;
}

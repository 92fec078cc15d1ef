/** Loads the posts of the calendar's days, keeps them up to date by events, and moves them. */
import type { Client } from "@urql/core";
import { useCallback, useMemo } from "react";
import { request, useApi } from "../../api/api";
import { compareTimestamps } from "../../timeline/window";
import { type Translate, useTranslation } from "../../ui/preferences";
import { notify, notifyFailure } from "../../ui/toasts";
import { plusDays } from "../calendar/days";
import { type LiveQuery, useLiveQuery } from "../live-query";
import { instantText } from "../local-times";
import { type ScheduledPost, ScheduledPosts, UpdatePost } from "../operations";
import { instantOf, localOf } from "../zones";
import { type DueTime, dueInput, dueInstantOf } from "./due-time";
import { rejectionMessage } from "./form-error";
import type { InputRejection } from "./rejections";

const POSTS_MAX = 999;
/** The cost of a request grows with its limit, and most calendars show fewer posts. */
const PAGE_SIZE = 100;

export interface CalendarPosts {
  posts: readonly ScheduledPost[];
  /** Whether there are more posts than the first 999, which were loaded. */
  isTruncated: boolean;
}

/** Returns the posts that are due on these days in the zone, earliest first. */
export function useCalendarPosts(days: readonly string[], zone: string): LiveQuery<CalendarPosts> {
  const { direct } = useApi();
  const first = days[0] as string;
  const last = days.at(-1) as string;
  const load = useCallback(async (): Promise<CalendarPosts> => {
    const oldest = timestampOf(instantOf(zone, `${first}T00:00`));
    const latest = timestampOf(new Date(instantOf(zone, `${plusDays(last, 1)}T00:00`).getTime() - 1));
    return postsBetween(direct, oldest, latest);
  }, [direct, first, last, zone]);
  return useLiveQuery(load, null);
}

async function postsBetween(direct: Client, oldest: string, latest: string): Promise<CalendarPosts> {
  const posts = new Map<string, ScheduledPost>();
  for (let start = oldest; ; ) {
    const variables = { oldest: start, latest, limit: PAGE_SIZE };
    const { items, newest } = (await request(direct, ScheduledPosts, variables)).page;
    for (const post of items) posts.set(post.id, post);
    const isTruncated =
      items.length === PAGE_SIZE && newest !== null && compareTimestamps(newest, latest) < 0;
    if (!isTruncated || posts.size >= POSTS_MAX)
      return { posts: [...posts.values()].slice(0, POSTS_MAX), isTruncated };
    start = newest;
  }
}

export function timestampOf(at: Date): string {
  const time_ms = at.getTime();
  return `${Math.floor(time_ms / 1000)}.${String(time_ms % 1000).padStart(3, "0")}000`;
}

/** Groups posts by slot: a day ("2026-11-23"), or an hour of a day ("2026-11-23T09"). */
export function usePostsBySlot(posts: readonly ScheduledPost[], zone: string, by: "day" | "hour") {
  return useMemo(() => {
    const postsBySlot = new Map<string, ScheduledPost[]>();
    for (const post of posts) {
      const slot = localOf(zone, new Date(post.dueAt)).slice(0, by === "day" ? 10 : 13);
      postsBySlot.set(slot, [...(postsBySlot.get(slot) ?? []), post]);
    }
    return postsBySlot;
  }, [posts, zone, by]);
}

/**
 * Returns a function that moves a post optimistically, and moves it back when the server rejects it. Throws:
 * CombinedError.
 */
export function useMovePost({ patch, refresh }: LiveQuery<CalendarPosts>) {
  const { direct } = useApi();
  const { t, language } = useTranslation();
  return async (post: ScheduledPost, dueTime: DueTime): Promise<void> => {
    patch((current) => replacePost(current, { ...post, dueAt: dueInstantOf(dueTime).toISOString() }));
    try {
      const input = { ...dueInput(dueTime), revision: post.revision };
      const { updateScheduledPost: movedPost } = await request(direct, UpdatePost, { id: post.id, input });
      patch((current) => replacePost(current, movedPost));
      notify(t("publishing.moved", { time: instantText(language, dueTime.zone, new Date(movedPost.dueAt)) }));
    } catch (error) {
      patch((current) => replacePost(current, post));
      throw error;
    } finally {
      refresh();
    }
  };
}

function replacePost({ posts, isTruncated }: CalendarPosts, post: ScheduledPost): CalendarPosts {
  return { posts: posts.map((each) => (each.id === post.id ? post : each)), isTruncated };
}

/** Shows why the server rejected a change: the rejected field and the server's message, or a general text. */
export function notifyRejection(error: unknown, rejection: InputRejection | null, t: Translate): void {
  if (rejection) notify(rejectionMessage(rejection, t));
  else notifyFailure(error);
}

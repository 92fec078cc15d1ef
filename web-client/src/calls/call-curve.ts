/** Computes the number of calls in progress over time, from the times of calls and from events. */

export interface CurvePoint {
  at_ms: number;
  active: number;
}

export interface CallTimes {
  startedAt: string | null;
  endedAt: string | null;
}

const POINTS_MAX = 2_000;

/**
 * Returns a point for each change of the number of calls, in order of time. A call without an end is still in progress.
 * The server returns only the last call of each number, so earlier attempts are missing.
 */
export function callCurve(calls: readonly CallTimes[]): CurvePoint[] {
  const steps = new Map<number, number>();
  const addStep = (at: string, difference: number) => {
    const at_ms = Date.parse(at);
    steps.set(at_ms, (steps.get(at_ms) ?? 0) + difference);
  };
  for (const { startedAt, endedAt } of calls) {
    if (startedAt === null) continue;
    addStep(startedAt, 1);
    if (endedAt !== null) addStep(endedAt, -1);
  }
  let active = 0;
  const points = [...steps]
    .sort(([a], [b]) => a - b)
    .map(([at_ms, difference]) => {
      active += difference;
      return { at_ms, active };
    });
  return thinOut(points);
}

/**
 * Returns the points with the point of an event added. An event that is repeated or older than the last point changes
 * nothing.
 */
export function withPoint(points: readonly CurvePoint[], point: CurvePoint): readonly CurvePoint[] {
  const last = points.at(-1);
  if (last && (point.at_ms < last.at_ms || point.active === last.active)) return points;
  if (last?.at_ms === point.at_ms) return points.with(-1, point);
  return thinOut([...points, point]);
}

/** Halves the points until they are few enough. Keeps the higher point of each pair, so that no peak is lost. */
function thinOut(points: CurvePoint[]): CurvePoint[] {
  if (points.length <= POINTS_MAX) return points;
  const kept = points.filter((point, index) => {
    const paired = points[index % 2 === 0 ? index + 1 : index - 1];
    return (
      paired === undefined ||
      point.active > paired.active ||
      (point.active === paired.active && index % 2 === 0)
    );
  });
  return thinOut(kept);
}

/** Returns the highest number of concurrent calls. */
export function peakOf(points: readonly CurvePoint[]): number {
  return points.reduce((peak, { active }) => Math.max(peak, active), 0);
}

/** Whether the server can serve, as GET /readyz tells it, in words for both languages. */

export type State = "ready" | "late" | "unready" | "unreachable";

export const TEXT: Record<State, { en: string; ja: string }> = {
  ready: { en: "Running, and ready to serve", ja: "稼働中です" },
  late: {
    en: "Running; live events come late, Redis does not answer",
    ja: "稼働中ですが、Redis が応答しないためライブイベントが遅れます",
  },
  unready: { en: "Running, but not ready to serve", ja: "起動していますが、まだ応答できません" },
  unreachable: { en: "The server does not answer", ja: "サーバーが応答しません" },
};

const PATIENCE_MS = 4_000;

/** Asks once. Every answer but a 2xx is unready, none within 4 s is unreachable; never throws. */
export async function askState(): Promise<State> {
  try {
    const response = await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!response.ok) return "unready";
    const { redis } = await response.json();
    return redis === "ok" ? "ready" : "late";
  } catch {
    return "unreachable";
  }
}

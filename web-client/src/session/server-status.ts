/** The server's readiness from GET /readyz, with texts in both languages. */

export type ServerStatus = "ready" | "late" | "unready" | "unreachable";

export const STATUS_TEXTS: Record<ServerStatus, { en: string; ja: string }> = {
  ready: { en: "The server is ready", ja: "サーバーは稼働中です" },
  late: {
    en: "The server is running, but live updates are delayed: Redis is not responding",
    ja: "稼働中ですが、Redis が応答しないためリアルタイム更新が遅れています",
  },
  unready: { en: "The server is running, but not ready", ja: "起動していますが、準備ができていません" },
  unreachable: { en: "The server is not responding", ja: "サーバーが応答しません" },
};

const TIMEOUT_MS = 4_000;

/**
 * Sends one request. A status other than 2xx means "unready". No response within 4 s means "unreachable". "late" means
 * that the server runs without Redis, and live updates are delayed. Never throws.
 */
export async function fetchServerStatus(): Promise<ServerStatus> {
  try {
    const response = await fetch("/readyz", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) return "unready";
    const { redis } = await response.json();
    return redis === "ok" ? "ready" : "late";
  } catch {
    return "unreachable";
  }
}

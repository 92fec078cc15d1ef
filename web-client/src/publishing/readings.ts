/** What the server says against an input: the field, what it expects, and both readings of an unclear local time. */
interface Refused {
  graphQLErrors?: readonly { extensions?: Record<string, unknown> }[];
}

export interface Refusal {
  field: string;
  expected: string;
}

/** Null when the error is about something else than an input. */
export function refusalOf(error: unknown): Refusal | null {
  const { code, field, expected } = (error as Refused).graphQLErrors?.[0]?.extensions ?? {};
  if (code !== "BAD_USER_INPUT") return null;
  return { field: String(field ?? ""), expected: String(expected ?? "") };
}

const READINGS = /^(\S+Z) or (\S+Z), because .* (occurs twice|does not exist) in /;

export interface Readings {
  kind: "twice" | "never";
  /** Instants, the earlier first. */
  instants: [string, string];
}

/** Both instants that may be meant, when that is what the refusal is about. */
export function readingsOf(refusal: Refusal | null): Readings | null {
  const [, first, second, how] = READINGS.exec(refusal?.expected ?? "") ?? [];
  if (first === undefined || second === undefined) return null;
  return { kind: how === "occurs twice" ? "twice" : "never", instants: [first, second] };
}

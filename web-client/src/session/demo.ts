/** The demo users, where the product offers them: it signs one in by a click. */

export interface DemoUser {
  id: string;
  handle: string;
  name: string;
  organizationId: string;
  roles: string[];
}

/** Empty where there is no demo, or no answer. */
export async function demoUsers(): Promise<DemoUser[]> {
  try {
    const response = await fetch("/demo/users", { cache: "no-store" });
    return response.ok ? (await response.json()).users : [];
  } catch {
    return [];
  }
}

/** A token. Raises: Error when there is none. */
export async function demoToken(user: string): Promise<string> {
  const response = await fetch("/demo/sign-in", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ user }),
  });
  if (!response.ok) throw new Error(`Signing in was answered with ${response.status}.`);
  return (await response.json()).token;
}

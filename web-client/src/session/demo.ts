/** Requests to the demo's sign-in, which a server may offer. */

export interface DemoUser {
  id: string;
  handle: string;
  name: string;
  organizationId: string;
  roles: string[];
}

/** Returns the demo users; an empty list if the server offers no demo or the request fails. */
export async function fetchDemoUsers(): Promise<DemoUser[]> {
  try {
    const response = await fetch("/demo/users", { cache: "no-store" });
    return response.ok ? (await response.json()).users : [];
  } catch {
    return [];
  }
}

/** Returns a token for a demo user. Throws: Error when the server rejects the request. */
export async function createDemoToken(userId: string): Promise<string> {
  const response = await fetch("/demo/sign-in", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ user: userId }),
  });
  if (!response.ok) throw new Error(`Could not sign in: the server answered with status ${response.status}.`);
  return (await response.json()).token;
}

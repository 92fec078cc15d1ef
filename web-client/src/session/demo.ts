/** The demo users, if the product offers a demo. */

export interface DemoUser {
  id: string;
  handle: string;
  name: string;
  organizationId: string;
  roles: string[];
}

/** Returns the demo users; empty without a demo or when the request fails. */
export async function fetchDemoUsers(): Promise<DemoUser[]> {
  try {
    const response = await fetch("/demo/users", { cache: "no-store" });
    return response.ok ? (await response.json()).users : [];
  } catch {
    return [];
  }
}

/** Returns a token. Raises: Error when the server refuses. */
export async function createDemoToken(userId: string): Promise<string> {
  const response = await fetch("/demo/sign-in", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ user: userId }),
  });
  if (!response.ok) throw new Error(`Signing in was answered with ${response.status}.`);
  return (await response.json()).token;
}

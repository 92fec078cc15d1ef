/**
 * An identity provider for tests: the certified OpenID provider `oidc-provider`, with its development forms.
 *
 * Standard input: {port, product, clientId, clientSecret, accounts: {login: claims}}. Without a secret the client is
 * public. Prints one line when it listens, and ends with its standard input.
 */
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

const lines = createInterface({ input: process.stdin });
const { value } = await lines[Symbol.asyncIterator]().next();
const { port, product, clientId, clientSecret, accounts } = JSON.parse(value);

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: clientId,
      ...(clientSecret ? { client_secret: clientSecret } : { token_endpoint_auth_method: "none" }),
      redirect_uris: [`${product}/sign-in/oidc/callback`],
      post_logout_redirect_uris: [`${product}/`],
      backchannel_logout_uri: `${product}/sign-in/oidc/logout`,
      backchannel_logout_session_required: true,
    },
  ],
  claims: {
    openid: ["sub", "org", "realm_access"],
    profile: ["name", "preferred_username"],
    email: ["email", "email_verified"],
  },
  cookies: { keys: ["a key of the tests"] },
  features: { backchannelLogout: { enabled: true } },
  findAccount: (_context, id) =>
    accounts[id] && { accountId: id, claims: () => ({ sub: id, ...accounts[id] }) },
  pkce: { required: () => true },
  // By default the provider sends requests to public addresses only.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
});
provider.listen(port, "127.0.0.1", () => console.log("ready"));
lines.on("close", () => process.exit());

/** Passkeys: the browser creates them and signs in with them, between two requests to the server. */
import { AccountFailure, sendAccountRequest } from "./account-requests";

/** Returns whether this browser has passkeys, and can parse the server's options for them. */
export const supportsPasskeys = (): boolean =>
  typeof PublicKeyCredential !== "undefined" && "parseCreationOptionsFromJSON" in PublicKeyCredential;

/** Signs in. The browser lets the person choose a passkey. Throws: AccountFailure. */
export async function signInWithPasskey(): Promise<void> {
  const { publicKey } = await sendAccountRequest("/sign-in/passkey/options", {});
  const options = PublicKeyCredential.parseRequestOptionsFromJSON(
    publicKey as PublicKeyCredentialRequestOptionsJSON,
  );
  const passkey = await answer(() => navigator.credentials.get({ publicKey: options }));
  await sendAccountRequest("/sign-in/passkey", { passkey }).catch((failure: AccountFailure) => {
    throw failure.code === "UNAUTHENTICATED" ? new AccountFailure("PASSKEY_REFUSED") : failure;
  });
}

/** Has the browser create a passkey with the options from a route. Returns its answer. Throws: AccountFailure. */
export async function createPasskey(path: string, body: object): Promise<unknown> {
  const { publicKey } = await sendAccountRequest(path, body);
  const options = PublicKeyCredential.parseCreationOptionsFromJSON(
    publicKey as PublicKeyCredentialCreationOptionsJSON,
  );
  return await answer(() => navigator.credentials.create({ publicKey: options }));
}

/** Adds a passkey to the account of the signed-in person. Throws: AccountFailure. */
export async function addPasskey(passkeyName: string): Promise<void> {
  try {
    const passkey = await createPasskey("/accounts/passkeys/options", {});
    await sendAccountRequest("/accounts/passkeys", { passkey, passkeyName });
  } catch (error) {
    const { code } = error as AccountFailure;
    if (code === "FORBIDDEN") throw new AccountFailure("SIGN_IN_AGAIN");
    throw code === "CONFLICT" ? new AccountFailure("PASSKEY_EXISTS") : error;
  }
}

/** Returns the browser's answer as JSON. Throws: AccountFailure if the person cancels or has the passkey already. */
async function answer(ask: () => Promise<Credential | null>): Promise<unknown> {
  try {
    const credential = (await ask()) as PublicKeyCredential | null;
    if (credential !== null) return credential.toJSON();
  } catch (error) {
    if ((error as DOMException).name === "InvalidStateError") throw new AccountFailure("PASSKEY_EXISTS");
  }
  throw new AccountFailure("PASSKEY_CANCELLED");
}

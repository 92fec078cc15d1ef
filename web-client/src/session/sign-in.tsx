/** The sign-in page. */
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import type { TextKey } from "../i18n/texts";
import { Avatar } from "../ui/avatar";
import { Button } from "../ui/button";
import { LanguageSelect } from "../ui/language-select";
import { type Translate, useTranslation } from "../ui/preferences";
import { useValue } from "../ui/value";
import { PasskeySignIn } from "./accounts/passkey-sign-in";
import { PasswordSignIn } from "./accounts/password-sign-in";
import { fetchSignInMethods, type SignInMethod } from "./browser-session";
import { createDemoToken, type DemoUser, fetchDemoUsers } from "./demo";
import { Hills } from "./hills";
import { ServerStatusLine } from "./server-status-line";
import { signIn, signOutReason } from "./session";

/** The frame of the pages for people who are not signed in. */
export function WelcomeFrame({ children }: { children: ReactNode }) {
  return (
    <div className="min-h-full">
      <header className="overflow-clip bg-linear-to-b from-sky-top to-sky-low">
        <div className="mx-auto flex max-w-3xl items-center justify-between gap-3 px-6 py-5">
          <p className="text-xl font-semibold">
            Noroshi{" "}
            <span lang="ja" className="font-normal text-quiet">
              狼煙
            </span>
          </p>
          <LanguageSelect />
        </div>
        <Hills />
      </header>
      <main className="mx-auto flex max-w-3xl flex-col gap-8 px-6 py-10">
        {children}
        <footer className="flex flex-wrap items-center gap-x-6 gap-y-2 border-t border-line pt-5 text-sm">
          <ServerStatusLine />
          <a href="/graphiql" className="text-accent underline underline-offset-2">
            GraphiQL
          </a>
        </footer>
      </main>
    </div>
  );
}

/** Shows the ways to sign in. `failure` is the code of the failed sign-in that led here; null if there is none. */
export function SignInPage({ failure }: { failure: string | null }) {
  const { t } = useTranslation();
  const reason = useValue(signOutReason);
  return (
    <WelcomeFrame>
      <div>
        <h1 className="text-display font-semibold tracking-tight">{t("welcome.title")}</h1>
        <p className="mt-3 max-w-xl text-lg text-quiet">{t("welcome.lead")}</p>
      </div>
      {reason === "refused" && (
        <p role="alert" className="rounded-card bg-wait-ground px-4 py-3 text-wait">
          {t("signIn.refused")}
        </p>
      )}
      {failure !== null && <SignInFailure failure={failure} />}
      <SignInMethods />
      <DemoUsers />
      <TokenForm />
    </WelcomeFrame>
  );
}

const FAILURE_TEXT_KEYS: Record<string, TextKey> = {
  CLAIMS: "signInFailure.CLAIMS",
  DEACTIVATED: "signInFailure.DEACTIVATED",
  DOMAIN: "signInFailure.DOMAIN",
  EXPIRED: "signInFailure.EXPIRED",
  INVITATION: "signInFailure.INVITATION",
  LOCAL_ACCOUNT: "signInFailure.LOCAL_ACCOUNT",
  REFUSED: "signInFailure.REFUSED",
  UNAVAILABLE: "signInFailure.UNAVAILABLE",
};

/** Says why the sign-in at the identity provider failed. */
function SignInFailure({ failure }: { failure: string }) {
  const { t } = useTranslation();
  return (
    <p role="alert" className="rounded-card bg-wait-ground px-4 py-3 text-wait">
      {t(FAILURE_TEXT_KEYS[failure] ?? "signInFailure.INVALID")}
    </p>
  );
}

/** Returns how people may sign in here; null until it is known. */
export function useSignInMethods(): SignInMethod[] | null {
  const [methods, setMethods] = useState<SignInMethod[] | null>(null);
  useEffect(() => {
    fetchSignInMethods().then(setMethods);
  }, []);
  return methods;
}

function SignInMethods() {
  const methods = useSignInMethods() ?? [];
  const has = (name: string) => methods.some(({ method }) => method === name);
  const providers = methods.filter(({ method }) => method === "OIDC");
  return (
    <>
      {providers.length > 0 && <IdentityProviderLinks providers={providers} />}
      {has("PASSKEY") && <PasskeySignIn />}
      {has("PASSWORD") && <PasswordSignIn canRegister={has("REGISTRATION")} />}
    </>
  );
}

function IdentityProviderLinks({ providers }: { providers: SignInMethod[] }) {
  const { t } = useTranslation();
  return (
    <ul className="flex flex-col items-start gap-3">
      {providers.map(({ method, name, url }) => (
        <li key={method} className="max-w-full">
          <a
            href={`${url}?next=${encodeURIComponent(`/${location.hash}`)}`}
            className="inline-flex min-h-12 max-w-full items-center rounded-full bg-accent px-6 font-medium break-words text-on-accent"
          >
            {t("signIn.with", { name })}
          </a>
        </li>
      ))}
    </ul>
  );
}

function DemoUsers() {
  const { t } = useTranslation();
  const [users, setUsers] = useState<DemoUser[]>([]);
  const [hasFailed, setHasFailed] = useState(false);
  useEffect(() => {
    fetchDemoUsers().then(setUsers);
  }, []);
  if (users.length === 0) return null;

  async function signInAs(user: DemoUser) {
    try {
      signIn(await createDemoToken(user.id));
    } catch {
      setHasFailed(true);
    }
  }

  return (
    <section aria-labelledby="demo">
      <h2 id="demo" className="text-xl font-semibold">
        {t("signIn.demo")}
      </h2>
      <p className="mt-1 text-quiet">{t("signIn.demoHint")}</p>
      <ul className="mt-4 grid gap-2 sm:grid-cols-2">
        {users.map((user) => (
          <li key={`${user.organizationId}/${user.id}`}>
            <button
              type="button"
              onClick={() => signInAs(user)}
              className="flex w-full items-center gap-3 rounded-card border border-line bg-raised p-3 text-left hover:bg-hover"
            >
              <Avatar user={user} />
              <span className="min-w-0 grow">
                <span className="block truncate font-medium">{user.name}</span>
                <span className="block truncate text-sm text-quiet">
                  @{user.handle} · {user.organizationId}
                </span>
              </span>
              <span className="text-xs text-quiet">{roleNames(user.roles, t)}</span>
            </button>
          </li>
        ))}
      </ul>
      {hasFailed && (
        <p role="alert" className="mt-3 text-bad">
          {t("signIn.failed")}
        </p>
      )}
    </section>
  );
}

const ROLE_TEXT_KEYS: Record<string, TextKey> = {
  ADMIN: "role.ADMIN",
  MEMBER: "role.MEMBER",
  OPERATOR: "role.OPERATOR",
  SERVICE: "role.SERVICE",
};

function roleNames(roles: readonly string[], t: Translate): string {
  return roles.flatMap((role) => (ROLE_TEXT_KEYS[role] ? [t(ROLE_TEXT_KEYS[role])] : [])).join(", ");
}

function TokenForm() {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  function submit(event: FormEvent) {
    event.preventDefault();
    const token = text.trim().replace(/^Bearer\s+/i, "");
    if (token) signIn(token);
  }
  return (
    <section aria-labelledby="token">
      <h2 id="token" className="text-xl font-semibold">
        {t("signIn.token")}
      </h2>
      <p className="mt-1 text-quiet" id="token-hint">
        {t("signIn.tokenHint")}
      </p>
      <form onSubmit={submit} className="mt-4 flex flex-wrap gap-2">
        <input
          className="field min-w-0 flex-1 basis-60 font-mono text-sm"
          aria-labelledby="token"
          aria-describedby="token-hint"
          autoComplete="off"
          spellCheck={false}
          placeholder="eyJhbGciOi…"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit" kind="main">
          {t("signIn")}
        </Button>
      </form>
    </section>
  );
}

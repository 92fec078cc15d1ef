/** Shows the sign-in page or, with a valid token, the frame. */
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { Provider } from "urql";
import { type Api, ApiProvider, createApi, request } from "../api/api";
import { errorCode } from "../api/failure";
import { createOutbox } from "../chat/composer/browser-outbox";
import { OutboxProvider } from "../chat/composer/outbox";
import { type AccountLink, accountLink, watchAccountLinks } from "../session/accounts/account-link";
import { takeSignInFailure } from "../session/browser-session";
import { isSession, sessionCredential } from "../session/identity";
import { endSession, handleRejection, resumeSession, signIn, token, userStorageOf } from "../session/session";
import { SignInLink } from "../session/sign-in-link";
import { UserStorageProvider } from "../session/user-storage";
import { ViewerProvider, ViewerQuery, type ViewerUser } from "../session/viewer";
import { ErrorState, LoadingState } from "../ui/states";
import { Toasts } from "../ui/toasts";
import { useValue } from "../ui/value";
import { AppFrame } from "./frame";
import { lazyScreen } from "./lazy-screen";

const AccountLinkPage = lazyScreen<{ link: AccountLink; token: string | null }>(() =>
  import("../session/accounts/account-link-page").then((module) => module.AccountLinkPage),
);

const SignInPage = lazyScreen<{ failure: string | null }>(() =>
  import("../session/sign-in").then((module) => module.SignInPage),
);

const signInFailure = takeSignInFailure();
watchAccountLinks();

export function App() {
  const currentToken = useValue(token);
  const isChecked = useSessionCheck();
  const link = useValue(accountLink);
  if (link !== null && isChecked)
    return (
      <>
        <AccountLinkPage key={link.token} link={link} token={currentToken} />
        <Toasts />
      </>
    );
  return (
    <>
      {currentToken !== null ? (
        <SignedInApp key={currentToken} token={currentToken} />
      ) : isChecked ? (
        <SignInPage failure={signInFailure} />
      ) : (
        <LoadingState />
      )}
      <SignInLink />
      <Toasts />
    </>
  );
}

/** Looks for the browser's session when the page opens without a token. Returns whether that is done. */
function useSessionCheck(): boolean {
  const [isChecked, setIsChecked] = useState(token.get() !== null);
  useEffect(() => {
    if (token.get() === null)
      resumeSession()
        .catch(() => false)
        .then(() => setIsChecked(true));
  }, []);
  return isChecked;
}

function SignedInApp({ token }: { token: string }) {
  const api = useMemo(() => createApi(token, handleRejection), [token]);
  const [viewer, setViewer] = useState<ViewerUser | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt sends the request again.
  useEffect(() => {
    setError(null);
    request(api.cached, ViewerQuery, {}).then(
      (answer) => acceptViewer(answer.viewer),
      (failure) => (errorCode(failure) === "UNAUTHENTICATED" ? endSession("refused") : setError(failure)),
    );

    function acceptViewer(found: ViewerUser | null) {
      if (found === null) return endSession("refused");
      const session = sessionCredential(found.organizationId, found.id);
      // Since this tab was loaded, another user may have signed in in this browser, which has one session.
      if (isSession(token) && session !== token) signIn(session);
      else setViewer(found);
    }
  }, [api, attempt]);

  if (error) return <ErrorState error={error} retry={() => setAttempt(attempt + 1)} />;
  if (!viewer) return <LoadingState />;
  return (
    <Provider value={api.cached}>
      <ApiProvider value={api}>
        <ViewerProvider value={viewer}>
          <TypedTextProvider api={api} token={token}>
            <AppFrame />
          </TypedTextProvider>
        </ViewerProvider>
      </ApiProvider>
    </Provider>
  );
}

/** Provides the texts that the user typed in this browser: drafts, and messages that are not sent yet. */
function TypedTextProvider({ api, token, children }: { api: Api; token: string; children: ReactNode }) {
  const storage = useMemo(() => userStorageOf(token), [token]);
  const outbox = useMemo(() => createOutbox(api, storage), [api, storage]);
  useEffect(() => outbox.start(), [outbox]);
  return (
    <UserStorageProvider value={storage}>
      <OutboxProvider value={outbox}>{children}</OutboxProvider>
    </UserStorageProvider>
  );
}

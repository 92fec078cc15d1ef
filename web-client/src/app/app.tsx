/** Shows the sign-in page or, with a valid token, the frame. */
import { useEffect, useMemo, useState } from "react";
import { Provider } from "urql";
import { ApiProvider, createApi, request } from "../api/api";
import { errorCode } from "../api/failure";
import { createOutbox, OutboxProvider } from "../chat/outbox";
import { signOut, token } from "../session/session";
import { SignInPage } from "../session/sign-in";
import { ViewerProvider, ViewerQuery, type ViewerUser } from "../session/viewer";
import { ErrorState, LoadingState } from "../ui/states";
import { Toasts } from "../ui/toasts";
import { useValue } from "../ui/value";
import { Frame } from "./frame";

export function App() {
  const currentToken = useValue(token);
  return (
    <>
      {currentToken === null ? <SignInPage /> : <SignedInApp key={currentToken} token={currentToken} />}
      <Toasts />
    </>
  );
}

function SignedInApp({ token }: { token: string }) {
  const api = useMemo(() => createApi(token, () => signOut("refused")), [token]);
  const outbox = useMemo(() => createOutbox(api), [api]);
  const [viewer, setViewer] = useState<ViewerUser | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt sends the request again.
  useEffect(() => {
    setError(null);
    request(api.cached, ViewerQuery, {}).then(
      (answer) => (answer.viewer ? setViewer(answer.viewer) : signOut("refused")),
      (failure) => (errorCode(failure) === "UNAUTHENTICATED" ? signOut("refused") : setError(failure)),
    );
  }, [api, attempt]);

  if (error) return <ErrorState error={error} retry={() => setAttempt(attempt + 1)} />;
  if (!viewer) return <LoadingState />;
  return (
    <Provider value={api.cached}>
      <ApiProvider value={api}>
        <OutboxProvider value={outbox}>
          <ViewerProvider value={viewer}>
            <Frame />
          </ViewerProvider>
        </OutboxProvider>
      </ApiProvider>
    </Provider>
  );
}

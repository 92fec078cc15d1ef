/** Shows the sign-in page or, with a valid token, the frame. */
import { useEffect, useMemo, useState } from "react";
import { Provider } from "urql";
import { ApiProvider, ask, createApi } from "../api/api";
import { errorCode } from "../api/failure";
import { createOutbox, OutboxProvider } from "../chat/outbox";
import { signOut, token } from "../session/session";
import { SignIn } from "../session/sign-in";
import { Viewer, ViewerProvider, type ViewerUser } from "../session/viewer";
import { ErrorState, LoadingState } from "../ui/states";
import { Toasts } from "../ui/toasts";
import { useValue } from "../ui/value";
import { Frame } from "./frame";

export function App() {
  const signedIn = useValue(token);
  return (
    <>
      {signedIn === null ? <SignIn /> : <SignedIn key={signedIn} token={signedIn} />}
      <Toasts />
    </>
  );
}

function SignedIn({ token }: { token: string }) {
  const api = useMemo(() => createApi(token, () => signOut("refused")), [token]);
  const outbox = useMemo(() => createOutbox(api), [api]);
  const [viewer, setViewer] = useState<ViewerUser | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [tries, setTries] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: each try sends the request again.
  useEffect(() => {
    setError(null);
    ask(api.cached, Viewer, {}).then(
      (answer) => (answer.viewer ? setViewer(answer.viewer) : signOut("refused")),
      (failure) => (errorCode(failure) === "UNAUTHENTICATED" ? signOut("refused") : setError(failure)),
    );
  }, [api, tries]);

  if (error) return <ErrorState error={error} retry={() => setTries(tries + 1)} />;
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

/** Asks before a sign-in link replaces the signed-in user. Anybody can make a page that opens such a link. */
import { useEffect, useState } from "react";
import { createApi, request } from "../api/api";
import { errorCode } from "../api/failure";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { useValue } from "../ui/value";
import { offeredToken, signIn, token } from "./session";
import { ViewerQuery, type ViewerUser } from "./viewer";

export function SignInLink() {
  const ownToken = useValue(token);
  const linkToken = useValue(offeredToken);
  if (linkToken === null) return null;
  return <SignInLinkOffer key={linkToken} ownToken={ownToken} linkToken={linkToken} />;
}

interface OfferedUsers {
  own: ViewerUser;
  linked: ViewerUser;
}

function SignInLinkOffer({ ownToken, linkToken }: { ownToken: string | null; linkToken: string }) {
  const { t } = useTranslation();
  const [users, setUsers] = useState<OfferedUsers | null>(null);

  useEffect(() => {
    let isCurrent = true;
    Promise.all([ownToken === null ? null : fetchUser(ownToken), fetchUser(linkToken)]).then(
      ([own, linked]) => {
        if (!isCurrent) return;
        if (linked === null) reject(() => notify(t("signInLink.invalid")));
        else if (own === null || isSameUser(own, linked)) accept(linkToken);
        else setUsers({ own, linked });
      },
      (error) => isCurrent && reject(() => notifyFailure(error)),
    );
    return () => {
      isCurrent = false;
    };
  }, [ownToken, linkToken, t]);

  if (users === null) return null;
  const { own, linked } = users;
  return (
    <ConfirmDialog
      title={t("signInLink.title", { name: linked.name })}
      text={t("signInLink.text", { own: userText(own), linked: userText(linked) })}
      action={t("signInLink.accept", { name: linked.name })}
      keepLabel={t("signInLink.reject", { name: own.name })}
      onDone={(isConfirmed) => (isConfirmed ? accept(linkToken) : reject())}
    />
  );
}

function accept(linkToken: string): void {
  offeredToken.set(null);
  signIn(linkToken);
}

function reject(explain?: () => void): void {
  offeredToken.set(null);
  explain?.();
}

const isSameUser = (one: ViewerUser, other: ViewerUser) =>
  one.id === other.id && one.organizationId === other.organizationId;
const userText = ({ name, handle, organizationId }: ViewerUser) => `${name} (@${handle}, ${organizationId})`;

/** Returns the user of a token; null if the server rejects the token. Throws: CombinedError. */
async function fetchUser(userToken: string): Promise<ViewerUser | null> {
  const { direct } = createApi(userToken, () => {});
  try {
    return (await request(direct, ViewerQuery, {})).viewer;
  } catch (error) {
    if (errorCode(error) === "UNAUTHENTICATED") return null;
    throw error;
  }
}

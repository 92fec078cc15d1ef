/** The account menu: profile, theme, language and sign-out. */
import { useEffect, useState } from "react";
import { request, useApi } from "../api/api";
import { fetchSignInMethods } from "../session/browser-session";
import { isSession } from "../session/identity";
import { token } from "../session/session";
import { useViewer } from "../session/viewer";
import { Avatar } from "../ui/avatar";
import { Button } from "../ui/button";
import { Popover } from "../ui/dialogs/popover";
import { Icon } from "../ui/icons";
import { LanguageSelect } from "../ui/language-select";
import { chooseTheme, theme, useTranslation } from "../ui/preferences";
import { useValue } from "../ui/value";
import { lazyDialog } from "./lazy-screen";
import { OwnMethod } from "./operations";
import { hrefOf } from "./router";
import { OPERATOR_SCREENS, visibleScreens } from "./screens";

const PasswordDialog = lazyDialog<{ onClose: () => void }>(() =>
  import("../session/accounts/password-dialog").then((module) => module.PasswordDialog),
);

interface Props {
  className: string;
  requestSignOut: () => void;
}

export function AccountMenu({ className, requestSignOut }: Props) {
  const [isChangingPassword, setIsChangingPassword] = useState(false);
  return (
    <>
      <AccountPanel
        className={className}
        requestSignOut={requestSignOut}
        changePassword={() => setIsChangingPassword(true)}
      />
      {isChangingPassword && <PasswordDialog onClose={() => setIsChangingPassword(false)} />}
    </>
  );
}

/** Returns the address of GraphiQL. A session needs no token there. */
function graphiqlHref(): string {
  const credential = token.get();
  return credential === null || isSession(credential) ? "/graphiql" : `/graphiql#token=${credential}`;
}

interface AccountPanelProps extends Props {
  changePassword: () => void;
}

/** Returns whether the browser's session may belong to an account with a password. */
function useHasPassword(): boolean {
  const [hasPassword, setHasPassword] = useState(false);
  const credential = useValue(token);
  const { direct } = useApi();
  useEffect(() => {
    if (credential === null || !isSession(credential)) return;
    Promise.all([fetchSignInMethods(), request(direct, OwnMethod, {})]).then(
      ([methods, { mySessions }]) => {
        const isLocal = mySessions.some(({ current, method }) => current && method !== "OIDC");
        setHasPassword(isLocal && methods.some(({ method }) => method === "PASSWORD"));
      },
      () => {},
    );
  }, [credential, direct]);
  return hasPassword;
}

function AccountPanel({ className, requestSignOut, changePassword }: AccountPanelProps) {
  const { t } = useTranslation();
  const viewer = useViewer();
  const hasPassword = useHasPassword();
  return (
    <Popover
      label={t("account")}
      trigger={(props) => (
        <button type="button" className={className} {...props}>
          <Avatar user={viewer} size="small" />
          <span className="max-w-full truncate">{t("account")}</span>
        </button>
      )}
    >
      {(close) => (
        <div className="flex w-64 flex-col gap-4 p-2">
          <a
            href={hrefOf({ name: "person", id: viewer.id })}
            onClick={close}
            className="flex items-center gap-3 rounded-xl p-1 hover:bg-hover"
          >
            <Avatar user={viewer} />
            <span className="min-w-0">
              <span className="block truncate font-semibold">{viewer.name}</span>
              <span className="block truncate text-sm text-quiet">
                @{viewer.handle} · {viewer.organizationId}
              </span>
            </span>
          </a>
          <OperatorLinks close={close} />
          <a
            href={hrefOf({ name: "myData" })}
            onClick={close}
            className="-my-2 flex min-h-10 items-center gap-3 rounded-xl px-2 hover:bg-hover"
          >
            <Icon name="shield" className="size-5 text-quiet" />
            {t("myData")}
          </a>
          <ThemeSelect />
          <LanguageSelect />
          <div className="flex flex-wrap gap-2 border-t border-line pt-3">
            {hasPassword && (
              <Button
                onClick={() => {
                  close();
                  changePassword();
                }}
              >
                {t("local.changePassword")}
              </Button>
            )}
            <a
              href={graphiqlHref()}
              className="inline-flex min-h-9 items-center rounded-full border border-line px-4 hover:bg-hover"
            >
              GraphiQL
            </a>
            <Button
              onClick={() => {
                close();
                requestSignOut();
              }}
            >
              {t("signOut")}
            </Button>
          </div>
        </div>
      )}
    </Popover>
  );
}

/** Links to the operators' screens, which do not fit into the navigation bar on a narrow screen. */
function OperatorLinks({ close }: { close: () => void }) {
  const { t } = useTranslation();
  const screens = visibleScreens(OPERATOR_SCREENS, useViewer().roles);
  if (screens.length === 0) return null;
  return (
    <ul className="border-b border-line pb-3 md:hidden">
      {screens.map(({ route, textKey, icon }) => (
        <li key={textKey}>
          <a
            href={hrefOf(route)}
            onClick={close}
            className="flex min-h-10 items-center gap-3 rounded-xl px-2 hover:bg-hover"
          >
            <Icon name={icon} className="size-5 text-quiet" />
            {t(textKey)}
          </a>
        </li>
      ))}
    </ul>
  );
}

function ThemeSelect() {
  const { t } = useTranslation();
  const chosen = useValue(theme);
  return (
    <fieldset className="flex gap-1" aria-label={t("theme")}>
      {(["system", "light", "dark"] as const).map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={chosen === name}
          onClick={() => chooseTheme(name)}
          className="min-h-9 rounded-full border border-transparent px-3 text-sm aria-pressed:border-current"
        >
          {t(`theme.${name}`)}
        </button>
      ))}
    </fieldset>
  );
}

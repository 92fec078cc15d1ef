/** GraphiQL for Noroshi: explorer, headers, subscriptions, and prepared operations. */
import "./workers";
import "graphiql/style.css";
import "@graphiql/plugin-explorer/style.css";
import "./graphiql.css";
import { explorerPlugin } from "@graphiql/plugin-explorer";
import { GraphiQL } from "graphiql";
import { createRoot } from "react-dom/client";
import { loadTexts } from "../i18n/texts";
import { watchSignOut } from "../session/sign-out-marks";
import { tokenInFragment } from "../token";
import { language } from "../ui/preferences";
import { fetcher } from "./fetcher";
import { headersAreKept, initialHeaders, removeTokenAfterSignOut } from "./headers";
import { OPERATIONS } from "./operations";

// GraphiQL's history plugin is left out, because it writes the headers of every run to local storage.
const plugins = [explorerPlugin({ showAttribution: false })];

// A sign-in link that is opened in the same tab changes only the fragment, which does not reload the page.
addEventListener("hashchange", () => {
  if (tokenInFragment() !== null) location.reload();
});

watchSignOut(() => removeTokenAfterSignOut() && location.reload());

loadTexts(language.get()).then(() =>
  createRoot(document.getElementById("graphiql") as HTMLElement).render(
    <GraphiQL
      fetcher={fetcher}
      plugins={plugins}
      defaultTabs={OPERATIONS}
      defaultHeaders={initialHeaders()}
      defaultEditorToolsVisibility="variables"
      shouldPersistHeaders={headersAreKept()}
      showPersistHeadersSettings
    >
      <GraphiQL.Logo>
        <a className="noroshi-logo" href="/">
          <img src="/favicon.svg" alt="" width="24" height="24" />
          Noroshi
        </a>
      </GraphiQL.Logo>
    </GraphiQL>,
  ),
);

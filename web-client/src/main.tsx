import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/app";
import { ignoreStrayDrops } from "./files/drops";
import { applyPreferences } from "./ui/preferences";
import "./ui/theme.css";

ignoreStrayDrops();
applyPreferences().then(() => {
  const root = document.getElementById("app");
  if (root) {
    createRoot(root).render(
      <StrictMode>
        <App />
      </StrictMode>,
    );
  }
});

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app/app";
import { applyPreferences } from "./ui/preferences";
import "./ui/theme.css";

applyPreferences();
const place = document.getElementById("app");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}

/** Loads the texts of all languages, before tests. */
import { loadTexts } from "./texts";
import "./mail-texts";
import "./webhook-texts";

await Promise.all([loadTexts("en"), loadTexts("ja")]);

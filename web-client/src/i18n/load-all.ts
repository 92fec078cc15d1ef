/** Loads the texts of all languages, before tests. */
import { loadTexts } from "./texts";

await Promise.all([loadTexts("en"), loadTexts("ja")]);

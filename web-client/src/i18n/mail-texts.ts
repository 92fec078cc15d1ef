/** Adds the texts of mail policies and reports of addresses. They are loaded with the screen, in all languages. */
import { mailDecisions as en } from "./en/mail-decisions";
import { mailDecisions as ja } from "./ja/mail-decisions";
import { addTexts } from "./texts";

addTexts({ en, ja });

/** Adds the texts of webhooks, which few people need. They are loaded with the screen, in all languages. */
import { webhooks as en } from "./en/webhooks";
import { webhooks as ja } from "./ja/webhooks";
import { addTexts } from "./texts";

addTexts({ en, ja });

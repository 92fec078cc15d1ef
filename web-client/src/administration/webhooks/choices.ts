/** What an administrator chooses from for a webhook: service keys and communities. */
import { useEffect, useState } from "react";
import { request, useApi } from "../../api/api";
import { notifyFailure } from "../../ui/toasts";
import { WebhookChoices } from "./operations";

/** Number of service keys, the newest first, and of communities. An organization has at most 100 active keys. */
const CHOICES_MAX = 500;

export interface Choices {
  /** The keys that have not ended, with the ids of their accounts, as webhooks have them. */
  keys: { id: string; name: string; scopes: string[] }[];
  communities: WebhookChoices["communities"];
}

/** Returns the choices; null until they are loaded, or if that fails. */
export function useChoices(): Choices | null {
  const { direct } = useApi();
  const [choices, setChoices] = useState<Choices | null>(null);
  useEffect(() => {
    request(direct, WebhookChoices, { limit: CHOICES_MAX }).then(
      ({ serviceKeys, communities }) =>
        setChoices({
          keys: serviceKeys
            .filter(({ active }) => active)
            .map(({ account, name, scopes }) => ({ id: account.id, name, scopes })),
          communities,
        }),
      notifyFailure,
    );
  }, [direct]);
  return choices;
}

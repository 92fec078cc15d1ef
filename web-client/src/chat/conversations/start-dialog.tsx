/** A dialog that starts a conversation: with one person, or with several in a group. */
import { useState } from "react";
import { request, useApi } from "../../api/api";
import { LIMITS } from "../../api/limits";
import { navigate } from "../../app/router";
import { FormDialog } from "../../ui/dialogs/form-dialog";
import { LabelledField } from "../../ui/fields/labelled-field";
import { useLength } from "../../ui/fields/length";
import type { Person } from "../../ui/fields/person-option";
import { useTranslation } from "../../ui/preferences";
import { StartConversation } from "./operations";
import { PeopleField } from "./people-field";

export function StartConversationDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [key] = useState(() => crypto.randomUUID());
  const [people, setPeople] = useState<readonly Person[]>([]);
  const [name, setName] = useState("");
  const length = useLength(name, LIMITS.groupName);
  const isGroup = people.length > 1;

  async function submit() {
    const userIds = people.map(({ id }) => id);
    const input = { userIds, groupName: isGroup ? name.trim() : "", idempotencyKey: key };
    const { startConversation } = await request(cached, StartConversation, { input });
    onClose();
    navigate({ name: "topic", id: startConversation.topic.id, at: null });
  }

  return (
    <FormDialog
      title={t("conversation.new")}
      action={t("conversation.start")}
      canSubmit={people.length > 0 && !length.isTooLong}
      submit={submit}
      onClose={onClose}
    >
      <PeopleField
        label={t("conversation.to")}
        people={people}
        onChange={setPeople}
        excludedIds={[]}
        maxCount={LIMITS.conversationPeople - 1}
      />
      {isGroup && (
        <LabelledField label={t("conversation.groupName")} length={length}>
          {(props) => (
            <input
              {...props}
              className="field"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </LabelledField>
      )}
    </FormDialog>
  );
}

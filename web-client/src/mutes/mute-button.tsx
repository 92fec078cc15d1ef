/** A button that mutes a user, a topic, a thread or a community for a time or for good, or ends the mute. */
import { useMutation } from "urql";
import { timeOrDate } from "../i18n/times";
import { ENDS_OF_OWN_MUTES, type RestrictionEndName, untilOf } from "../moderation/ends";
import { IconButton } from "../ui/button";
import { MenuList } from "../ui/dialogs/menu";
import { Popover } from "../ui/dialogs/popover";
import { useTranslation } from "../ui/preferences";
import { notify, notifyFailure } from "../ui/toasts";
import { MUTE, type MuteSubject, UNMUTE } from "./operations";

interface Props {
  subject: MuteSubject;
  id: string;
  name: string;
  isMuted: boolean;
}

export function MuteButton({ subject, id, name, isMuted }: Props) {
  const { t, language } = useTranslation();
  const [, mute] = useMutation(MUTE[subject]);
  const [, unmute] = useMutation(UNMUTE[subject]);

  async function start(choice: RestrictionEndName) {
    const now = new Date();
    const until = untilOf(choice, now);
    const { error } = await mute({ id, until });
    if (error) notifyFailure(error);
    else if (until)
      notify(t("mutes.mutedUntil", { name, until: timeOrDate(language, new Date(until), now) }));
    else notify(t(`mutes.muted.${subject}`, { name }));
  }
  async function end() {
    const { error } = await unmute({ id });
    if (error) notifyFailure(error);
    else notify(t("mutes.unmuted", { name }));
  }

  const label = t(isMuted ? "mutes.unmute" : "mutes.mute", { name });
  return (
    <Popover
      label={label}
      // One button in both states, so that it keeps the focus.
      trigger={({ id: buttonId, ...menu }) => (
        <IconButton
          id={buttonId}
          icon={isMuted ? "bellOff" : "bell"}
          label={label}
          {...(isMuted ? { onClick: end } : menu)}
        />
      )}
    >
      {(close) => (
        <>
          <p className="px-3 py-1 text-sm text-quiet">{t("mutes.howLong")}</p>
          <MenuList
            close={close}
            items={ENDS_OF_OWN_MUTES.map((choice) => ({
              key: choice,
              text: t(choice === "never" ? "mutes.forGood" : `end.${choice}`),
              run: () => void start(choice),
            }))}
          />
        </>
      )}
    </Popover>
  );
}

/** The bell of a topic or a conversation. It opens the choice of the notifications that arrive from there. */
import { lazyScreen } from "../app/lazy-screen";
import { IconButton } from "../ui/button";
import { Popover } from "../ui/dialogs/popover";
import { useTranslation } from "../ui/preferences";
import type { NotificationPlace } from "./notification-choices";

const NotificationChoices = lazyScreen(() =>
  import("./notification-choices").then((module) => module.NotificationChoices),
);

export function NotificationMenu({ name, ...place }: NotificationPlace & { name: string }) {
  const { t } = useTranslation();
  const label = t(place.isMuted ? "push.menuMuted" : "push.menu", { name });
  return (
    <Popover
      label={label}
      trigger={(props) => <IconButton icon={place.isMuted ? "bellOff" : "bell"} label={label} {...props} />}
    >
      {() => (
        <div className="w-80 max-w-full">
          <NotificationChoices {...place} />
        </div>
      )}
    </Popover>
  );
}

/** The heading of a feed and the links to the other feeds. */
import { hrefOf, useRoute } from "../app/router";
import { useTranslation } from "../ui/preferences";
import { Tab } from "../ui/tabs";

type FeedTabName = "home" | "everyone" | "notifications" | "reactions" | "notificationSettings";

export function FeedTabs({ title, names }: { title: FeedTabName; names: readonly FeedTabName[] }) {
  const { t } = useTranslation();
  const route = useRoute();
  return (
    <div className="flex items-center gap-1 py-4">
      <h1 className="sr-only">{t(title)}</h1>
      {names.map((name) => (
        <Tab key={name} href={hrefOf({ name })} isCurrent={route.name === name}>
          {t(name)}
        </Tab>
      ))}
    </div>
  );
}

/** The heading of a feed and the links to the other feeds. */
import { hrefOf, usePlace } from "../app/router";
import { useTranslation } from "../ui/preferences";
import { Tab } from "../ui/tabs";

type Name = "home" | "everyone" | "notifications" | "reactions";

export function FeedTabs({ title, names }: { title: Name; names: readonly Name[] }) {
  const { t } = useTranslation();
  const place = usePlace();
  return (
    <div className="flex items-center gap-1 py-4">
      <h1 className="sr-only">{t(title)}</h1>
      {names.map((name) => (
        <Tab key={name} href={hrefOf({ name })} isCurrent={place.name === name}>
          {t(name)}
        </Tab>
      ))}
    </div>
  );
}

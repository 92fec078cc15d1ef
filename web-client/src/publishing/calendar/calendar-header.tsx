/** The calendar's header: links to earlier and later days, the view, the time zone, and the button for a new post. */
import { hrefOf, type Route } from "../../app/router";
import { Button, IconButton } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { monthText, rangeText } from "../local-times";
import { chooseZone, useZone, ZoneSelect } from "../zone";
import { type CalendarView, stepView } from "./days";

const VIEWS: readonly CalendarView[] = ["month", "week", "list"];
const ROUND_LINK_CLASS =
  "inline-flex size-9 items-center justify-center rounded-full text-quiet hover:bg-hover";

interface Props {
  view: CalendarView;
  day: string;
  days: readonly string[];
  createPost: () => void;
  /** Opens the accounts dialog; null if the viewer lacks the permission. */
  openAccounts: (() => void) | null;
}

export function CalendarHeader({ view, day, days, createPost, openAccounts }: Props) {
  const { t, language } = useTranslation();
  const zone = useZone();
  const routeOf = (routeDay: string | null, routeView: CalendarView = view): Route => ({
    name: "publishing",
    view: routeView,
    day: routeDay,
    post: null,
  });
  const title =
    view === "month"
      ? monthText(language, day)
      : rangeText(language, days[0] as string, days.at(-1) as string);
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-2 border-b border-line px-3 py-2.5 sm:px-5">
      <h1 id="publishing" className="sr-only">
        {t("publishing")}
      </h1>
      <div className="flex items-center">
        <a
          href={hrefOf(routeOf(stepView(view, day, -1)))}
          aria-label={t("publishing.earlier")}
          className={ROUND_LINK_CLASS}
        >
          <Icon name="back" />
        </a>
        <a
          href={hrefOf(routeOf(stepView(view, day, 1)))}
          aria-label={t("publishing.later")}
          className={ROUND_LINK_CLASS}
        >
          <Icon name="back" className="size-5 rotate-180" />
        </a>
        <a
          href={hrefOf(routeOf(null))}
          className="ml-1 inline-flex min-h-9 items-center rounded-full border border-line px-3 text-sm hover:bg-hover"
        >
          {t("publishing.today")}
        </a>
      </div>
      <p aria-live="polite" className="min-w-40 grow text-lg font-semibold" data-testid="shown">
        {title}
      </p>
      <nav aria-label={t("publishing.views")} className="flex rounded-full border border-line p-0.5">
        {VIEWS.map((each) => (
          <a
            key={each}
            href={hrefOf(routeOf(day, each))}
            aria-current={each === view ? "page" : undefined}
            className="inline-flex min-h-8 items-center rounded-full px-3 text-sm text-quiet hover:bg-hover aria-[current]:bg-glow aria-[current]:font-medium aria-[current]:text-accent"
          >
            {t(`publishing.view.${each}`)}
          </a>
        ))}
      </nav>
      <ZoneSelect
        value={zone}
        onChange={chooseZone}
        className="min-w-0 flex-1 basis-24 py-1 text-sm sm:w-auto sm:max-w-44 sm:flex-none"
      />
      {openAccounts && <IconButton icon="link" label={t("publishing.accounts")} onClick={openAccounts} />}
      <Button kind="main" onClick={createPost} className="max-sm:grow">
        <Icon name="plus" className="size-4" />
        {t("publishing.new")}
      </Button>
    </header>
  );
}

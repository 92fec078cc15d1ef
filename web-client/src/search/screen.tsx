/** The search screen: a field for words and operators, and the messages, posts, topics or people that match. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { hrefOf, navigate, type SearchRoute } from "../app/router";
import { Button } from "../ui/button";
import { Icon } from "../ui/icons";
import { useTranslation } from "../ui/preferences";
import { Tab } from "../ui/tabs";
import { OPERATORS, SEARCH_KINDS, withOperator } from "./matches";
import { PeopleResults } from "./people-results";
import { SearchResults } from "./results";

export function SearchScreen({ route }: { route: SearchRoute }) {
  const { t } = useTranslation();
  const { kind, query } = route;
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto max-w-3xl px-3 pb-16 pt-4 sm:px-6">
        <h1 className="sr-only">{t("search")}</h1>
        <SearchForm key={`${kind} ${query}`} route={route} />
        <nav aria-label={t("search.kinds")} className="flex flex-wrap gap-1 py-3">
          {SEARCH_KINDS.map((each) => (
            <Tab key={each} href={hrefOf({ ...route, kind: each })} isCurrent={each === kind}>
              {t(`search.${each}`)}
            </Tab>
          ))}
        </nav>
        {kind === "people" ? (
          <PeopleResults key={query} query={query} />
        ) : (
          <SearchResults key={`results ${kind} ${query}`} kind={kind} query={query} />
        )}
      </div>
    </div>
  );
}

function SearchForm({ route }: { route: SearchRoute }) {
  const { t } = useTranslation();
  const field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(route.query);
  useEffect(() => field.current?.focus(), []);
  function submit(event: FormEvent) {
    event.preventDefault();
    navigate({ ...route, query: text.trim() });
  }
  function add(operator: string) {
    setText(withOperator(text, operator, new Date().toLocaleDateString("sv")));
    field.current?.focus();
  }
  return (
    <search>
      <form onSubmit={submit} className="flex gap-2">
        <input
          ref={field}
          type="search"
          className="field min-w-0 grow"
          aria-label={t("search.label")}
          placeholder={t("search.label")}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button kind="main" type="submit" className="shrink-0 whitespace-nowrap">
          <Icon name="search" className="size-4" />
          {t("search")}
        </Button>
      </form>
      <fieldset className="mt-2 flex flex-wrap items-center gap-1">
        <legend className="sr-only">{t("search.filters")}</legend>
        {OPERATORS[route.kind].map((operator) => (
          <button
            key={operator}
            type="button"
            onClick={() => add(operator)}
            className="min-h-8 rounded-full border border-line px-3 text-sm text-quiet hover:bg-hover hover:text-ink"
          >
            {operator}
          </button>
        ))}
      </fieldset>
    </search>
  );
}

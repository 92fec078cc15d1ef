/** The rows of a list that is loaded page by page, and the button for the next page. */
import type { ReactNode } from "react";
import type { PagedList } from "../timeline/use-paged-list";
import { Button } from "./button";
import { useTranslation } from "./preferences";
import { ErrorState, LoadingState } from "./states";

interface Props<Item> {
  list: PagedList<Item>;
  label: string;
  /** Shown if the list has no items. */
  empty: ReactNode;
  children: (item: Item, previous: Item | undefined) => ReactNode;
}

export function PagedRows<Item>({ list, label, empty, children }: Props<Item>) {
  const { t } = useTranslation();
  const { items, error, hasMore, isLoadingMore, loadMore, reload } = list;
  if (error) return <ErrorState error={error} retry={reload} />;
  if (!items) return <LoadingState />;
  if (items.length === 0) return empty;
  return (
    <>
      <ul aria-label={label}>{items.map((item, index) => children(item, items[index - 1]))}</ul>
      {hasMore && (
        <p className="py-4 text-center">
          <Button isBusy={isLoadingMore} onClick={loadMore}>
            {t("list.more")}
          </Button>
        </p>
      )}
    </>
  );
}

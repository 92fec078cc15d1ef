/** Placeholders for content that is empty, failed to load, or is loading. */
import type { ReactNode } from "react";
import { failureTextKey } from "../api/failure";
import { Button } from "./button";
import { Icon, type IconName } from "./icons";
import { useTranslation } from "./preferences";

export function EmptyState({
  icon,
  title,
  hint,
  children,
}: {
  icon: IconName;
  title: string;
  hint: string;
  children?: ReactNode;
}) {
  return (
    <div className="mx-auto flex max-w-sm flex-col items-center gap-2 px-6 py-16 text-center">
      <span className="mb-2 rounded-full bg-glow p-4 text-accent">
        <Icon name={icon} className="size-7" />
      </span>
      <p className="text-balance text-lg font-semibold">{title}</p>
      <p className="text-balance text-quiet">{hint}</p>
      {children && <div className="mt-3 flex flex-wrap justify-center gap-2">{children}</div>}
    </div>
  );
}

export function ErrorState({ error, retry }: { error: unknown; retry?: () => void }) {
  const { t } = useTranslation();
  return (
    <div role="alert" className="mx-auto flex max-w-sm flex-col items-center gap-3 px-6 py-12 text-center">
      <p className="text-balance">{t(failureTextKey(error))}</p>
      {retry && <Button onClick={retry}>{t("tryAgain")}</Button>}
    </div>
  );
}

/** Grey placeholders for rows that are loading. */
export function LoadingState({ rows = 6 }: { rows?: number }) {
  const { t } = useTranslation();
  return (
    <div role="status" className="flex flex-col gap-5 p-4">
      <span className="sr-only">{t("loading")}</span>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the placeholders are identical and keep their order.
        <div key={row} className="pulse flex gap-3" aria-hidden="true">
          <div className="size-9 shrink-0 rounded-full bg-hover" />
          <div className="flex grow flex-col gap-2 pt-1">
            <div className="h-3 w-32 rounded bg-hover" />
            <div className="h-3 rounded bg-hover" style={{ width: `${40 + ((row * 23) % 50)}%` }} />
          </div>
        </div>
      ))}
    </div>
  );
}

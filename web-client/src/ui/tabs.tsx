/** One tab in the navigation of a group of screens. */
import type { ReactNode } from "react";

export function Tab({
  href,
  isCurrent,
  children,
}: {
  href: string;
  isCurrent: boolean;
  children: ReactNode;
}) {
  return (
    <a
      href={href}
      aria-current={isCurrent ? "page" : undefined}
      className="rounded-full px-4 py-1.5 font-medium max-sm:px-2.5 text-quiet hover:bg-hover aria-[current]:bg-glow aria-[current]:text-accent"
    >
      {children}
    </a>
  );
}

/** Buttons: primary, secondary, and icon-only. */
import type { ComponentProps } from "react";
import { Icon, type IconName } from "./icons";

const KINDS = {
  main: "bg-accent text-on-accent hover:bg-accent-strong",
  other: "border border-line bg-raised text-ink hover:bg-hover",
  quiet: "text-ink hover:bg-hover",
  bad: "bg-bad text-raised hover:opacity-90",
} as const;

export function Button({
  kind = "other",
  className = "",
  ...rest
}: ComponentProps<"button"> & { kind?: keyof typeof KINDS }) {
  return (
    <button
      type="button"
      className={`inline-flex min-h-9 items-center justify-center gap-2 rounded-full px-4 py-1.5 text-base font-medium motion-safe:transition-colors disabled:opacity-50 ${KINDS[kind]} ${className}`}
      {...rest}
    />
  );
}

export function IconButton({
  icon,
  label,
  className = "",
  size = "size-9",
  ...rest
}: ComponentProps<"button"> & { icon: IconName; label: string; size?: string }) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={`inline-flex ${size} shrink-0 items-center justify-center rounded-full text-quiet motion-safe:transition-colors hover:bg-hover hover:text-ink disabled:opacity-50 ${className}`}
      {...rest}
    >
      <Icon name={icon} className={size === "size-8" ? "size-4" : "size-5"} />
    </button>
  );
}

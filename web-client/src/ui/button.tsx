/** Buttons: primary, secondary, and icon-only. */
import type { ComponentProps } from "react";
import { Icon, type IconName } from "./icons";

const KINDS = {
  main: "bg-accent text-on-accent hover:bg-accent-strong",
  other: "border border-line bg-raised text-ink hover:bg-hover",
  quiet: "text-ink hover:bg-hover",
  bad: "bg-bad text-raised hover:opacity-90",
} as const;

interface Props extends ComponentProps<"button"> {
  kind?: keyof typeof KINDS;
  /** Disables the button while its action runs. Unlike `disabled`, this keeps the keyboard's focus on the button. */
  isBusy?: boolean;
}

export function Button({ kind = "other", isBusy = false, className = "", onClick, ...rest }: Props) {
  return (
    <button
      type="button"
      aria-disabled={isBusy || undefined}
      onClick={isBusy ? (event) => event.preventDefault() : onClick}
      className={`inline-flex min-h-9 items-center justify-center gap-2 rounded-full px-4 py-1.5 text-base font-medium motion-safe:transition-colors disabled:opacity-50 aria-disabled:opacity-50 ${KINDS[kind]} ${className}`}
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

/** Counts a text against the server's limit. The count appears near the limit; beyond it, the field is invalid. */
import { type ReactNode, useId } from "react";
import { useTranslation } from "../preferences";
import { excessOf } from "./text-length";

const SHOWN_WITHIN = 200;

export interface LengthCheck {
  isTooLong: boolean;
  /** Attributes of the field. `LabelledField` adds them to those of its hint. */
  fieldProps: { "aria-invalid"?: true; "aria-describedby"?: string };
  /** The count, to be placed beside the field. */
  note: ReactNode;
}

export function useLength(text: string, limit: number): LengthCheck {
  const { t } = useTranslation();
  const id = useId();
  const excess = excessOf(text, limit);
  const isTooLong = excess > 0;
  const isShown = excess > -Math.min(SHOWN_WITHIN, limit / 5);
  const countText = isTooLong
    ? t("length.tooLong", { count: excess, limit })
    : t("length.left", { count: -excess });
  return {
    isTooLong,
    fieldProps: {
      ...(isTooLong && { "aria-invalid": true }),
      ...(isShown && { "aria-describedby": id }),
    },
    note: (
      <span
        id={id}
        role="status"
        className={`block text-right text-sm tabular-nums empty:hidden ${isTooLong ? "text-bad" : "text-quiet"}`}
      >
        {isShown && countText}
      </span>
    ),
  };
}

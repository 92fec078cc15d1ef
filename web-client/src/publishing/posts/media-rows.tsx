/** Images and videos of a post, by URL. Programs add them; people change, describe and remove them here. */
import { LIMITS } from "../../api/limits";
import { IconButton } from "../../ui/button";
import { useLength } from "../../ui/fields/length";
import { useTranslation } from "../../ui/preferences";
import type { MediaKind, ScheduledPost } from "../operations";

export type ScheduledMedium = ScheduledPost["media"][number];

const KINDS: readonly MediaKind[] = ["IMAGE", "VIDEO", "REEL"];

interface Props {
  value: readonly ScheduledMedium[];
  onChange: (media: readonly ScheduledMedium[]) => void;
}

export function MediaRows({ value, onChange }: Props) {
  const { t } = useTranslation();
  const change = (index: number, part: Partial<ScheduledMedium>) =>
    onChange(value.map((medium, mediumIndex) => (mediumIndex === index ? { ...medium, ...part } : medium)));
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 text-sm font-medium">{t("publishing.media")}</legend>
      {value.map((medium, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row has no identity other than its index.
        <div key={index} className="flex flex-wrap items-center gap-2 rounded-card border border-line p-2">
          <input
            type="url"
            className="field min-w-0 flex-1 basis-60 text-sm"
            aria-label={t("publishing.mediaUrl")}
            placeholder="https://…"
            value={medium.url}
            onChange={(event) => change(index, { url: event.target.value.trim() })}
          />
          <select
            className="field w-auto text-sm"
            aria-label={t("publishing.mediaKind")}
            value={medium.kind}
            onChange={(event) => change(index, { kind: event.target.value as MediaKind })}
          >
            {KINDS.map((kind) => (
              <option key={kind} value={kind}>
                {t(`publishing.media.${kind}`)}
              </option>
            ))}
          </select>
          <IconButton
            icon="trash"
            size="size-8"
            label={t("publishing.mediaRemove")}
            onClick={() => onChange(value.filter((_, mediumIndex) => mediumIndex !== index))}
          />
          <AltTextField value={medium.altText} onChange={(altText) => change(index, { altText })} />
        </div>
      ))}
    </fieldset>
  );
}

function AltTextField({ value, onChange }: { value: string; onChange: (altText: string) => void }) {
  const { t } = useTranslation();
  const length = useLength(value, LIMITS.altText);
  return (
    <div className="basis-full">
      <input
        className="field text-sm"
        aria-label={t("publishing.altText")}
        placeholder={t("publishing.altText")}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        {...length.fieldProps}
      />
      {length.note}
    </div>
  );
}

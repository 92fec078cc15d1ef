/** The stamps that a person may send, and the packs that the person does not own yet, with what to do for them. */
import { useQuery } from "urql";
import type { StampPackWithProgress } from "../../stamps/operations";
import { useAllStampPacks } from "../../stamps/own-stamps";
import { StampImage } from "../../stamps/stamp-image";
import { Icon } from "../../ui/icons";
import { useTranslation } from "../../ui/preferences";
import { LabelledProgress } from "../../ui/progress";
import { type Stamp, Stamps } from "../operations";

/** The stamps of the program, and below them the packs of the organization. Locked packs come last. */
export function StampGrid({ onPick }: { onPick: (stamp: Stamp) => void }) {
  const [{ data }] = useQuery({ query: Stamps });
  const packs = useAllStampPacks();
  return (
    <div className="thin-scroll max-h-72 min-h-24 max-w-72 overflow-y-auto">
      <StampButtons stamps={data?.stamps ?? []} onPick={onPick} />
      {packs
        .filter(({ owned }) => owned)
        .map((pack) => (
          <section key={pack.id} aria-label={pack.name}>
            <h2 className="truncate px-1 pt-2 text-sm font-medium text-quiet">{pack.name}</h2>
            <StampButtons stamps={pack.stamps} onPick={onPick} />
          </section>
        ))}
      {packs
        .filter(({ owned }) => !owned)
        .map((pack) => (
          <LockedPack key={pack.id} pack={pack} />
        ))}
    </div>
  );
}

function LockedPack({ pack: { name, rule, progress, stamps } }: { pack: StampPackWithProgress }) {
  const { t } = useTranslation();
  const total = rule?.threshold ?? 0;
  return (
    <section aria-label={name} className="flex flex-col gap-1 px-1 pt-2">
      <h2 className="flex items-center gap-1 text-sm font-medium text-quiet">
        <Icon name="lock" className="size-4 shrink-0" />
        <span className="truncate">{name}</span>
      </h2>
      <p className="text-sm">
        {rule ? t(`stamps.earn.${rule.kind}`, { count: total }) : t("stamps.locked.GIVEN")}
      </p>
      {rule && total > 1 && (
        <LabelledProgress
          label={t("stamps.progress", { done: progress ?? 0, total })}
          done={progress ?? 0}
          total={total}
        />
      )}
      <ul className="grid grid-cols-4 gap-1 opacity-50 grayscale">
        {stamps.map((stamp) => (
          <li key={stamp.id} title={stamp.name} className="p-1">
            <StampImage path={stamp.imageUrl} name={stamp.name} className="size-16" />
          </li>
        ))}
      </ul>
    </section>
  );
}

function StampButtons({ stamps, onPick }: { stamps: readonly Stamp[]; onPick: (stamp: Stamp) => void }) {
  return (
    <div className="grid grid-cols-4 gap-1">
      {stamps.map(({ id, name, imageUrl }) => (
        <button
          key={id}
          type="button"
          title={name}
          className="rounded-lg p-1 hover:bg-hover"
          onClick={() => onPick({ id, name, imageUrl })}
        >
          <StampImage path={imageUrl} name={name} className="size-16" />
        </button>
      ))}
    </div>
  );
}

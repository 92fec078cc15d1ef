/** The organization's packs of stamps, which administrators create, fill and remove. */
import { type ReactNode, useState } from "react";
import { useQuery } from "urql";
import { request, useApi } from "../api/api";
import { Button, IconButton } from "../ui/button";
import { ConfirmDialog } from "../ui/dialogs/confirm";
import { Icon } from "../ui/icons";
import { type Translate, useTranslation } from "../ui/preferences";
import { EmptyState, ErrorState, LoadingState } from "../ui/states";
import { notifyFailure } from "../ui/toasts";
import { AvailabilityDialog } from "./availability-dialog";
import { type OwnStamp, RemoveStamp, RemoveStampPack, type StampPack, StampPacks } from "./operations";
import { NewPackDialog, NewStampDialog } from "./pack-dialogs";
import { StampImage } from "./stamp-image";

export function StampPackList() {
  const { t } = useTranslation();
  const [isCreating, setIsCreating] = useState(false);
  const [{ data, error }, reload] = useQuery({ query: StampPacks, requestPolicy: "cache-and-network" });
  return (
    <>
      <div className="mb-2 flex items-start justify-between gap-4">
        <p className="text-quiet">{t("stamps.hint")}</p>
        <Button kind="main" className="shrink-0" onClick={() => setIsCreating(true)}>
          <Icon name="plus" className="size-4" />
          {t("stamps.newPack")}
        </Button>
      </div>
      {data ? (
        <StampPackSections packs={data.stampPacks} />
      ) : error ? (
        <ErrorState error={error} retry={reload} />
      ) : (
        <LoadingState />
      )}
      {isCreating && <NewPackDialog onClose={() => setIsCreating(false)} />}
    </>
  );
}

function StampPackSections({ packs }: { packs: readonly StampPack[] }) {
  const { t } = useTranslation();
  if (packs.length === 0)
    return <EmptyState icon="stamp" title={t("stamps.none")} hint={t("stamps.noneHint")} />;
  return packs.map((pack) => <StampPackSection key={pack.id} pack={pack} />);
}

function StampPackSection({ pack }: { pack: StampPack }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [isAdding, setIsAdding] = useState(false);
  const [isRemoving, setIsRemoving] = useState(false);
  const [isChanging, setIsChanging] = useState(false);
  const remove = () => request(cached, RemoveStampPack, { packId: pack.id }).catch(notifyFailure);
  return (
    <section aria-labelledby={`pack-${pack.id}`} className="border-b border-line py-4">
      <div className="flex flex-wrap items-center gap-2">
        <h2 id={`pack-${pack.id}`} className="min-w-0 grow truncate text-lg font-semibold">
          {pack.name}
        </h2>
        <Button
          onClick={() => setIsChanging(true)}
          aria-label={`${t("stamps.change", { name: pack.name })}: ${availabilityText(pack, t)}`}
        >
          <Icon name={pack.availability === "EVERYONE" ? "people" : "lock"} className="size-4 shrink-0" />
          <span className="truncate">{availabilityText(pack, t)}</span>
        </Button>
        <Button onClick={() => setIsAdding(true)}>{t("stamps.add")}</Button>
        <IconButton
          icon="trash"
          label={t("stamps.removePack", { name: pack.name })}
          onClick={() => setIsRemoving(true)}
        />
      </div>
      {pack.stamps.length === 0 ? (
        <p className="py-2 text-quiet">{t("stamps.empty")}</p>
      ) : (
        <ul className="mt-3 grid grid-cols-[repeat(auto-fill,minmax(7.5rem,1fr))] gap-2">
          {pack.stamps.map((stamp) => (
            <StampItem key={stamp.id} packId={pack.id} stamp={stamp} />
          ))}
        </ul>
      )}
      {isChanging && <AvailabilityDialog pack={pack} onClose={() => setIsChanging(false)} />}
      {isAdding && <NewStampDialog packId={pack.id} onClose={() => setIsAdding(false)} />}
      {isRemoving && (
        <RemoveDialog
          title={t("stamps.removePack", { name: pack.name })}
          text={t("stamps.removePackText")}
          close={() => setIsRemoving(false)}
          remove={remove}
        />
      )}
    </section>
  );
}

/** Returns who may use a pack, in a few words. */
function availabilityText({ availability, rule }: StampPack, t: Translate): string {
  return rule
    ? t(`stamps.earn.${rule.kind}`, { count: rule.threshold })
    : t(availability === "GIVEN" ? "stamps.locked.GIVEN" : "stamps.availability.EVERYONE");
}

function StampItem({ packId, stamp }: { packId: string; stamp: OwnStamp }) {
  const { t } = useTranslation();
  const { cached } = useApi();
  const [isRemoving, setIsRemoving] = useState(false);
  const remove = () => request(cached, RemoveStamp, { packId, stampName: stamp.name }).catch(notifyFailure);
  return (
    <li className="flex flex-col items-center gap-1 rounded-card bg-well p-2">
      <StampImage path={stamp.imageUrl} name="" className="size-20" />
      <div className="flex w-full items-center gap-1">
        <code className="min-w-0 grow truncate text-sm" title={stamp.emoji ?? ""}>
          {stamp.emoji}
        </code>
        <IconButton
          icon="trash"
          size="size-8"
          label={t("stamps.remove", { name: stamp.name })}
          onClick={() => setIsRemoving(true)}
        />
      </div>
      {isRemoving && (
        <RemoveDialog
          title={t("stamps.remove", { name: stamp.name })}
          text={t("stamps.removeText")}
          close={() => setIsRemoving(false)}
          remove={remove}
        />
      )}
    </li>
  );
}

interface RemoveDialogProps {
  title: string;
  text: string;
  close: () => void;
  remove: () => void;
}

function RemoveDialog({ title, text, close, remove }: RemoveDialogProps): ReactNode {
  const { t } = useTranslation();
  return (
    <ConfirmDialog
      title={title}
      text={text}
      action={t("stamps.removeAction")}
      onDone={(isConfirmed) => {
        close();
        if (isConfirmed) remove();
      }}
    />
  );
}

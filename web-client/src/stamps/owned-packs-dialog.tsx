/** The dialog in which an administrator sees a person's packs of stamps, and takes back those that were given. */
import { useQuery } from "urql";
import { request, useApi } from "../api/api";
import { dateAndTime } from "../i18n/times";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialogs/dialog";
import { useTranslation } from "../ui/preferences";
import { ErrorState, LoadingState } from "../ui/states";
import { notify, notifyFailure } from "../ui/toasts";
import { type OwnedPack, StampPackOwnerships, TakeBackStampPack } from "./operations";

interface Props {
  user: { id: string; name: string };
  onClose: () => void;
}

export function OwnedPacksDialog({ user: { id: userId, name }, onClose }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [{ data, error }, reload] = useQuery({
    query: StampPackOwnerships,
    variables: { userId },
    requestPolicy: "network-only",
  });

  async function takeBack({ id, name: pack }: { id: string; name: string }) {
    try {
      await request(direct, TakeBackStampPack, { packId: id, userId });
      notify(t("admin.packTakenBack", { name, pack }));
      reload({ requestPolicy: "network-only" });
    } catch (failure) {
      notifyFailure(failure);
    }
  }

  return (
    <Dialog title={t("admin.packsNamed", { name })} onClose={onClose}>
      {error ? (
        <ErrorState error={error} retry={reload} />
      ) : !data ? (
        <LoadingState />
      ) : data.stampPackOwnerships.length === 0 ? (
        <p className="text-quiet">{t("admin.packsNone")}</p>
      ) : (
        <ul aria-label={t("admin.packsNamed", { name })} className="flex flex-col gap-3">
          {data.stampPackOwnerships.map(
            (owned) => owned.pack && <OwnedPackRow key={owned.pack.id} {...owned} takeBack={takeBack} />,
          )}
        </ul>
      )}
    </Dialog>
  );
}

function OwnedPackRow({
  pack,
  ownedSince,
  giver,
  takeBack,
}: OwnedPack & { takeBack: (pack: { id: string; name: string }) => void }) {
  const { t, language } = useTranslation();
  if (!pack) return null;
  const date = dateAndTime(language, new Date(ownedSince));
  return (
    <li className="flex items-center gap-3">
      <div className="min-w-0 grow">
        <p className="truncate font-medium">{pack.name}</p>
        <p className="text-sm text-quiet">
          {giver ? t("admin.packGiven", { name: giver.name, date }) : t("admin.packEarned", { date })}
        </p>
      </div>
      {pack.availability === "GIVEN" && (
        <Button aria-label={t("admin.takePackBackNamed", { pack: pack.name })} onClick={() => takeBack(pack)}>
          {t("admin.takePackBack")}
        </Button>
      )}
    </li>
  );
}

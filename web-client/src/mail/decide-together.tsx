/** Blocks or unblocks all pasted addresses with one reason. Addresses that are not valid are named before. */
import { useState } from "react";
import { request, useApi } from "../api/api";
import { failureTextKey, rejectionText } from "../api/failure";
import { Button } from "../ui/button";
import { ReasonDialog } from "../ui/dialogs/reason-dialog";
import { useTranslation } from "../ui/preferences";
import { notify } from "../ui/toasts";
import { invalidAddresses, LOOKUP_MAX } from "./addresses";
import { BlockAddresses, UnblockAddresses } from "./decision-operations";
import { AddressBook, type AddressStanding } from "./operations";

const NAMED_MAX = 10;

interface Props {
  addresses: readonly string[];
  /** Called with the standings of all addresses after a decision. */
  onDecided: (standings: readonly AddressStanding[]) => void;
}

export function DecideTogether({ addresses, onDecided }: Props) {
  const { t } = useTranslation();
  const { direct } = useApi();
  const [asking, setAsking] = useState<"block" | "unblock" | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [rejection, setRejection] = useState<string | null>(null);
  const count = addresses.length;

  async function attempt(run: () => Promise<void>) {
    setIsBusy(true);
    setRejection(null);
    try {
      await run();
    } catch (error) {
      setRejection(rejectionText(error) ?? t(failureTextKey(error)));
    }
    setIsBusy(false);
  }

  const ask = (decision: "block" | "unblock") =>
    attempt(async () => {
      const { addressBook } = await request(direct, AddressBook, { addresses: [...addresses] });
      const invalid = invalidAddresses(addressBook);
      if (invalid.length === 0) return setAsking(decision);
      const names = invalid.slice(0, NAMED_MAX).join(", ");
      setRejection(t("mailTogether.invalid", { count: invalid.length, names }));
    });

  function decide(reason: string | null) {
    setAsking(null);
    if (reason === null) return;
    const variables = { addresses: [...addresses], reason };
    void attempt(async () => {
      const standings =
        asking === "block"
          ? (await request(direct, BlockAddresses, variables)).blockAddresses
          : (await request(direct, UnblockAddresses, variables)).unblockAddresses;
      // The answer has the order of the argument, and may name addresses by their normalised forms.
      onDecided(standings.map((standing, index) => ({ ...standing, address: addresses[index] ?? "" })));
      notify(t(asking === "block" ? "mailTogether.blocked" : "mailTogether.unblocked", { count }));
    });
  }

  if (count === 0) return null;
  if (count > LOOKUP_MAX) return <p className="mt-3 text-bad">{t("mailTogether.tooMany")}</p>;
  return (
    <div className="mt-3 flex flex-wrap items-center justify-end gap-2">
      <Button isBusy={isBusy} onClick={() => ask("block")}>
        {t("mailTogether.block")}
      </Button>
      <Button isBusy={isBusy} onClick={() => ask("unblock")}>
        {t("mailTogether.unblock")}
      </Button>
      {rejection && (
        <p role="alert" className="w-full break-words text-bad">
          {rejection}
        </p>
      )}
      {asking && (
        <ReasonDialog
          title={t(`mailTogether.${asking}Title`)}
          text={t(`mailTogether.${asking}Ask`, { count })}
          action={t(`mailTogether.${asking}Title`)}
          isDestructive={asking === "block"}
          onDone={decide}
        />
      )}
    </div>
  );
}

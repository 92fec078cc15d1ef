/** The viewer's own data: the browsers in which the viewer is signed in. */
import { useTranslation } from "../ui/preferences";
import { SessionList } from "./session-list";

export function MyDataScreen() {
  const { t } = useTranslation();
  return (
    <div className="thin-scroll h-full overflow-y-auto">
      <div className="mx-auto max-w-3xl px-3 pb-16 pt-6 sm:px-6">
        <h1 className="mb-6 text-xl font-semibold">{t("myData")}</h1>
        <SessionList />
      </div>
    </div>
  );
}

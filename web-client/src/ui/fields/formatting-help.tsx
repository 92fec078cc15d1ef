/** A button that shows how texts are formatted. */
import { IconButton } from "../button";
import { Popover } from "../dialogs/popover";
import { useTranslation } from "../preferences";
import { RichText } from "../text/rich-text";

export function FormattingHelp() {
  const { t } = useTranslation();
  return (
    <Popover
      label={t("formatting.title")}
      trigger={(props) => <IconButton icon="format" label={t("formatting.title")} {...props} />}
    >
      {() => <Examples />}
    </Popover>
  );
}

function Examples() {
  const { t } = useTranslation();
  const examples = [
    `**${t("formatting.bold")}**`,
    `*${t("formatting.italic")}*`,
    `~~${t("formatting.struck")}~~`,
    `\`${t("formatting.code")}\``,
    `\`\`\`\n${t("formatting.codeBlock")}\n\`\`\``,
    `> ${t("formatting.quote")}`,
    `- ${t("formatting.item")}`,
    `1. ${t("formatting.item")}`,
    `[${t("formatting.link")}](https://example.org)`,
    `\\*${t("formatting.escaped")}\\*`,
  ];
  return (
    <div className="thin-scroll max-h-[70vh] w-96 max-w-full overflow-y-auto px-2 py-1">
      <h2 className="mb-1 font-semibold">{t("formatting.title")}</h2>
      <table className="w-full table-fixed text-sm">
        <thead>
          <tr className="text-left text-quiet">
            <th className="w-1/2 py-1 pr-3 font-medium">{t("formatting.typed")}</th>
            <th className="py-1 font-medium">{t("formatting.shown")}</th>
          </tr>
        </thead>
        <tbody>
          {examples.map((text) => (
            <tr key={text} className="border-t border-line align-top">
              <td className="whitespace-pre-wrap break-words py-1 pr-3 font-mono text-xs leading-5">
                {text}
              </td>
              <td className="break-words py-1">
                <RichText text={text} mentions={[]} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="mt-2 text-sm text-quiet">{t("formatting.keys")}</p>
    </div>
  );
}

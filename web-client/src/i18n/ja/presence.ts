/** Texts of presence: who is online and who is typing. */
import type { presence as en } from "../en/presence";
import type { Text } from "../texts";

export const presence: Record<keyof typeof en, Text> = {
  "admin.settings": "設定",
  "audit.PRESENCE_SET": "{actor} さんが組織のオンライン状態の表示を変更しました",
  "auditAction.PRESENCE_SET": "オンライン状態の表示の変更",
  "auditValue.off": "オフ",
  "auditValue.on": "オン",
  "presence.enable": "オンライン状態と入力中の表示を使う",
  "presence.enableHint": "組織の全員に適用されます。各自が自分の表示を隠すこともできます。",
  "presence.offByOrganization": "管理者が表示をオフにしています。現在は誰にも表示されません。",
  "presence.online": "オンライン",
  "presence.show": "オンライン状態と入力中であることを他の人に表示する",
  "presence.showHint": "同じコミュニティや会話の人に表示されます。ブロックした人には表示されません。",
  "presence.title": "オンライン状態",
  "typing.one": "{name} さんが入力中…",
  "typing.several": "複数の人が入力中…",
  "typing.two": "{first} さんと {second} さんが入力中…",
};

/** Texts of passkeys. */
import type { passkeys as en } from "../en/passkeys";
import type { Text } from "../texts";

export const passkeys: Record<keyof typeof en, Text> = {
  "passkeys.add": "パスキーを追加",
  "passkeys.added": "パスキーを追加しました。次回からサインインに使えます。",
  "passkeys.cancelled": "パスキーの操作が完了しませんでした。もう一度お試しください。",
  "passkeys.created": "追加 {time}",
  "passkeys.createLead": "端末がパスキーを作成します。端末のロック解除と同じ方法で使えます。",
  "passkeys.device": "1 台の端末だけ",
  "passkeys.exists": "このパスキーは追加できません。すでに追加済みか、20 件の上限に達しています。",
  "passkeys.hint": "指紋、顔、PIN、セキュリティキーで、パスワードなしにサインインできます。",
  "passkeys.last":
    "ほかにサインインする方法がありません。先にパスワードを設定するか、別のパスキーを追加してください。",
  "passkeys.name": "パスキーの名前",
  "passkeys.none": "パスキーはありません。",
  "passkeys.passkey": "パスキー",
  "passkeys.refused": "このパスキーは使えません。もう一度試すか、別の方法でサインインしてください。",
  "passkeys.remove": "削除",
  "passkeys.removeAsk":
    "このパスキーではサインインできなくなります。ほかのブラウザーからはサインアウトします。",
  "passkeys.removed": "パスキー「{name}」を削除しました。",
  "passkeys.removeNamed": "{name} を削除",
  "passkeys.rename": "名前を変更",
  "passkeys.renameNamed": "{name} の名前を変更",
  "passkeys.signIn": "パスキーでサインイン",
  "passkeys.signInAgain":
    "サインインから時間がたっています。サインアウトしてもう一度サインインしてから追加してください。",
  "passkeys.signInLead": "メールアドレスもパスワードも要りません。",
  "passkeys.synced": "端末間で同期",
  "passkeys.title": "パスキー",
  "passkeys.unused": "未使用",
  "passkeys.used": "最終利用 {time}",
  "passkeys.usePasskey": "パスワードの代わりにパスキーを使う",
  "passkeys.usePassword": "パスキーの代わりにパスワードを使う",
};

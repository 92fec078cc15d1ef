/** Texts of the viewer's own data. */
import type { myData as en } from "../en/my-data";
import type { Text } from "../texts";

export const myData: Record<keyof typeof en, Text> = {
  myData: "自分のデータ",
  "sessions.current": "このブラウザー",
  "sessions.endNamed": "{name} からサインアウト",
  "sessions.endOthers": "ほかのすべてからサインアウト",
  "sessions.endOthersAsk": "ほかのすべてのブラウザーが 10 秒以内にサインアウトされます。",
  "sessions.ended": "{count} 件のブラウザーからサインアウトしました",
  "sessions.hint": "使わなくなったブラウザーや、覚えのないブラウザーからサインアウトできます。",
  "sessions.method.DEMO": "デモユーザー",
  "sessions.method.OIDC": "シングルサインオン",
  "sessions.method.PASSKEY": "パスキー",
  "sessions.method.PASSWORD": "パスワード",
  "sessions.none": "サインイン中のブラウザーはありません",
  "sessions.noneHint": "トークンでサインインしています。トークンは有効期限まで使えます。",
  "sessions.started": "サインイン {time}",
  "sessions.title": "サインイン中のブラウザー",
  "sessions.unknownBrowser": "不明なブラウザー",
  "sessions.used": "最終利用 {time}",
};

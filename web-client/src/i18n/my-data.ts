/** Texts of the viewer's own data. */
import type { Text } from "./texts";

export const en = {
  myData: "My data",
  "sessions.current": "This browser",
  "sessions.endNamed": "Sign out of {name}",
  "sessions.endOthers": "Sign out everywhere else",
  "sessions.endOthersAsk": "All other browsers are signed out within 10 seconds.",
  "sessions.ended": {
    one: "{count} browser is signed out",
    other: "{count} browsers are signed out",
  },
  "sessions.hint": "Sign out of browsers that you no longer use or don’t recognize.",
  "sessions.method.DEMO": "Demo user",
  "sessions.method.OIDC": "Single sign-on",
  "sessions.method.PASSKEY": "Passkey",
  "sessions.method.PASSWORD": "Password",
  "sessions.none": "No signed-in browsers",
  "sessions.noneHint": "You are signed in with a token, which ends by itself.",
  "sessions.started": "signed in {time}",
  "sessions.title": "Signed-in browsers",
  "sessions.unknownBrowser": "Unknown browser",
  "sessions.used": "used {time}",
};

export const ja: Record<keyof typeof en, Text> = {
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
  "sessions.noneHint": "トークンでサインインしています。トークンは期限が来ると終わります。",
  "sessions.started": "サインイン {time}",
  "sessions.title": "サインイン中のブラウザー",
  "sessions.unknownBrowser": "不明なブラウザー",
  "sessions.used": "最終利用 {time}",
};

/** Texts of local accounts: signing in with a password, links and invitations. */
import type { accounts as en } from "../en/accounts";
import type { Text } from "../texts";

export const accounts: Record<keyof typeof en, Text> = {
  "local.accept": "招待を受ける",
  "local.accepted": "招待を受けました。",
  "local.address": "メールアドレス",
  "local.badAddress": "メールアドレスの形式が正しくありません。",
  "local.badHandle": "ハンドルは a〜z、0〜9、_ の 1〜30 文字で入力してください。「me」は使えません。",
  "local.badName": "名前は 1〜100 文字で入力してください。",
  "local.changePassword": "パスワードの変更",
  "local.changePasswordLead":
    "変更後もこの端末ではサインインしたままです。他の端末からはサインアウトします。",
  "local.conflict":
    "このリンクまたは招待はもう使えないか、このアドレスのアカウントがすでにあります。アカウントがある場合は、先にサインインしてください。",
  "local.create": "アカウントを作成",
  "local.currentPassword": "現在のパスワード",
  "local.expired": "この招待は期限切れです。新しい招待を依頼してください。",
  "local.finish": "アカウントの登録を完了",
  "local.finishLead": "メールアドレスを確認しました。名前とパスワードを設定してください。",
  "local.firstAdmin": "管理者アカウントの作成",
  "local.firstAdminLead": "初回の起動です。ここで作成するアカウントが組織の管理者になります。",
  "local.forgotten": "パスワードを忘れた場合",
  "local.forgottenLead":
    "メールアドレスを入力してください。アカウントがあれば、パスワードを再設定するリンクを送ります。",
  "local.handle": "ハンドル",
  "local.handleHint":
    "任意です。@メンションに使います。a〜z、0〜9、_ の 30 文字まで。空欄の場合は名前から作ります。使用中の場合は番号が付きます。あとで変更できます。",
  "local.haveAccount": "すでにアカウントがあります",
  "local.invitation": "招待が届いています",
  "local.invited": "招待を受けると組織に参加できます。役割: {role}",
  "local.invitedTo": "招待を受けると組織とコミュニティ「{community}」に参加できます。役割: {role}",
  "local.leave": "このページを閉じる",
  "local.linkInvalid": "このリンクは無効です。使用済み、期限切れ、または不完全なリンクです。",
  "local.mailed": "メールを確認してください",
  "local.mailedLead":
    "このアドレスにリンクを送れる場合は、数分以内に届きます。迷惑メールフォルダーも確認してください。",
  "local.name": "名前",
  "local.nameHint": "ほかの人に表示される名前です。",
  "local.newPassword": "新しいパスワード",
  "local.orAccount": "またはここでアカウントを作成",
  "local.password": "パスワード",
  "local.passwordChanged": "パスワードを変更しました。",
  "local.passwordHint": "10 文字以上。いくつかの単語を並べると、覚えやすく推測されにくくなります。",
  "local.proveAddress": "まず、メールアドレスを確認します。",
  "local.register": "アカウントを作成",
  "local.registerLead": "メールアドレスを入力してください。名前とパスワードを設定するリンクを送ります。",
  "local.reset": "新しいパスワードの設定",
  "local.resetDone": "パスワードを変更しました。新しいパスワードでサインインしてください。",
  "local.resetLead": "設定後、すべての端末からサインアウトします。",
  "local.revoked": "この招待は取り消されました。新しい招待を依頼してください。",
  "local.security": "セキュリティ",
  "local.sendMail": "リンクを送信",
  "local.tooMany": "試行回数が多すぎます。1 分ほど待ってから、もう一度お試しください。",
  "local.usedUp": "この招待は上限人数に達しました。新しい招待を依頼してください。",
  "local.weakPassword":
    "短すぎるか、推測されやすいか、名前を含むパスワードです。いくつかの単語など、10 文字以上にしてください。",
  "local.wrongCurrentPassword": "現在のパスワードが違います。",
  "local.sessionEnded": "セッションが終了しました。もう一度サインインしてください。",
  "local.wrongPassword": "メールアドレスまたはパスワードが違います。",
};

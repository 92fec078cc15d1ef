"""Texts of the mails about accounts, in English and Japanese."""

from collections.abc import Mapping
from dataclasses import dataclass

from storage.identity.accounts.local_accounts import MailLanguage

MailVariables = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MailText:
    """A subject and a text in each language, with placeholders such as `{link}`."""

    texts: Mapping[MailLanguage, tuple[str, str]]

    def render(self, language: MailLanguage, values: MailVariables) -> tuple[str, str]:
        """Returns the subject and the text. Each value becomes one line, so that a name can't imitate our text."""
        lines = {name: " ".join(value.split()) for name, value in values.items()}
        subject, text = self.texts[language]
        return subject.format_map(lines), text.format_map(lines)


REGISTRATION = MailText(
    {
        MailLanguage.EN: (
            "Finish your Noroshi account",
            "Hello,\n\nsomebody asked for a Noroshi account for {address}. Open this link to choose your name and "
            "password:\n\n{link}\n\nThe link is valid for 24 hours and can be used once. If it was not you, ignore "
            "this mail: no account is made.",
        ),
        MailLanguage.JA: (
            "Noroshi アカウントの登録を完了してください",
            "こんにちは。\n\n{address} の Noroshi アカウントの登録が申し込まれました。次のリンクを開いて、名前と"
            "パスワードを設定してください。\n\n{link}\n\nリンクの有効期限は 24 時間で、一度だけ使えます。お心当たりが"
            "ない場合は、このメールを無視してください。アカウントは作成されません。",
        ),
    }
)

ALREADY_REGISTERED = MailText(
    {
        MailLanguage.EN: (
            "You already have a Noroshi account",
            "Hello,\n\nsomebody asked for a Noroshi account for this mail address, which has one. Sign in here, or "
            "choose another password there if you have forgotten it:\n\n{link}\n\nIf it was not you, ignore this mail.",
        ),
        MailLanguage.JA: (
            "Noroshi アカウントはすでにあります",
            "こんにちは。\n\nこのメールアドレスで Noroshi アカウントの登録が申し込まれましたが、アカウントはすでに"
            "あります。次のページからサインインするか、パスワードを忘れた場合は再設定してください。\n\n{link}\n\n"
            "お心当たりがない場合は、このメールを無視してください。",
        ),
    }
)

RESET = MailText(
    {
        MailLanguage.EN: (
            "Choose a new Noroshi password",
            "Hello {name},\n\nopen this link to choose a new password:\n\n{link}\n\nThe link is valid for one hour and "
            "can be used once. Afterwards you are signed out everywhere. If you did not ask for it, ignore this mail: "
            "your password stays as it is.",
        ),
        MailLanguage.JA: (
            "Noroshi のパスワードの再設定",
            "{name} さん\n\n次のリンクを開いて、新しいパスワードを設定してください。\n\n{link}\n\nリンクの有効期限は "
            "1 時間で、一度だけ使えます。再設定すると、すべての端末からサインアウトします。お心当たりがない場合は、"
            "このメールを無視してください。パスワードは変わりません。",
        ),
    }
)

INVITATION = MailText(
    {
        MailLanguage.EN: (
            "You are invited to Noroshi",
            "Hello,\n\n{creator} invites you to Noroshi. Open this link to accept:\n\n{link}\n\nThe link is valid "
            "until {until}.",
        ),
        MailLanguage.JA: (
            "Noroshi への招待",
            "こんにちは。\n\n{creator} さんが Noroshi に招待しています。次のリンクを開いて参加してください。\n\n"
            "{link}\n\nリンクの有効期限は {until} です。",
        ),
    }
)

"""Texts of the mails about accounts, in English and Japanese."""

from collections.abc import Mapping
from dataclasses import dataclass

from storage.identity.accounts.local_accounts import Language

Variables = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MailText:
    """A subject and a text in each language, with placeholders such as `{link}`."""

    texts: Mapping[Language, tuple[str, str]]

    def rendered(self, language: Language, values: Variables) -> tuple[str, str]:
        """Returns the subject and the text. A value is one line, so that nobody's name looks like our text."""
        plain = {name: " ".join(value.split()) for name, value in values.items()}
        subject, text = self.texts[language]
        return subject.format_map(plain), text.format_map(plain)


REGISTRATION = MailText(
    {
        Language.EN: (
            "Finish your Noroshi account",
            "Hello,\n\nsomebody asked for a Noroshi account for {address}. Open this link to choose your name and "
            "password:\n\n{link}\n\nThe link is valid for 24 hours and can be used once. If it was not you, ignore "
            "this mail: no account is made.",
        ),
        Language.JA: (
            "Noroshi アカウントの登録を完了してください",
            "こんにちは。\n\n{address} の Noroshi アカウントの登録が申し込まれました。次のリンクを開いて、名前と"
            "パスワードを設定してください。\n\n{link}\n\nリンクの有効期限は 24 時間で、一度だけ使えます。お心当たりが"
            "ない場合は、このメールを無視してください。アカウントは作成されません。",
        ),
    }
)

ALREADY_REGISTERED = MailText(
    {
        Language.EN: (
            "You already have a Noroshi account",
            "Hello,\n\nsomebody asked for a Noroshi account for this mail address, which has one. Sign in here, or "
            "choose another password there if you have forgotten it:\n\n{link}\n\nIf it was not you, ignore this mail.",
        ),
        Language.JA: (
            "Noroshi アカウントはすでにあります",
            "こんにちは。\n\nこのメールアドレスで Noroshi アカウントの登録が申し込まれましたが、アカウントはすでに"
            "あります。次のページからサインインするか、パスワードを忘れた場合は再設定してください。\n\n{link}\n\n"
            "お心当たりがない場合は、このメールを無視してください。",
        ),
    }
)

RESET = MailText(
    {
        Language.EN: (
            "Choose a new Noroshi password",
            "Hello {name},\n\nopen this link to choose a new password:\n\n{link}\n\nThe link is valid for one hour and "
            "can be used once. Afterwards you are signed out everywhere. If you did not ask for it, ignore this mail: "
            "your password stays as it is.",
        ),
        Language.JA: (
            "Noroshi のパスワードの再設定",
            "{name} さん\n\n次のリンクを開いて、新しいパスワードを設定してください。\n\n{link}\n\nリンクの有効期限は "
            "1 時間で、一度だけ使えます。再設定すると、すべての端末からサインアウトします。お心当たりがない場合は、"
            "このメールを無視してください。パスワードは変わりません。",
        ),
    }
)

INVITATION = MailText(
    {
        Language.EN: (
            "You are invited to Noroshi",
            "Hello,\n\n{creator} invites you to Noroshi. Open this link to accept:\n\n{link}\n\nThe link is valid "
            "until {until}.",
        ),
        Language.JA: (
            "Noroshi への招待",
            "こんにちは。\n\n{creator} さんが Noroshi に招待しています。次のリンクを開いて参加してください。\n\n"
            "{link}\n\nリンクの有効期限は {until} です。",
        ),
    }
)

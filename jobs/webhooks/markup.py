"""Markup of texts for chat systems: Slack's mrkdwn and Discord's Markdown.

Texts of people are escaped, so that they neither notify a whole channel nor show a link under another name.
"""

import re
from abc import ABC, abstractmethod
from typing import Any

_SLACK_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_CHANNEL_MENTION = re.compile(r"@(?=channel|here|all|everyone)", re.IGNORECASE)
"""Mentions that notify a whole channel in Mattermost and Discord."""

_DISCORD_SPECIALS = re.compile(r"[\\*_~`|<>\[\]()#@:-]")
"""Characters that begin markup, links and mentions in Discord. A backslash before any of them shows it as it is."""

_UNSAFE_IN_ADDRESS = str.maketrans({"<": "%3C", ">": "%3E", "(": "%28", ")": "%29", " ": "%20"})


class Markup(ABC):
    """The markup of a chat system."""

    @abstractmethod
    def escape(self, text: str) -> str:
        """Returns a text of one line that is shown as it is."""

    @abstractmethod
    def bold(self, escaped: str) -> str:
        """Returns an escaped text in bold."""

    def italic(self, escaped: str) -> str:
        """Returns an escaped text in italics."""
        return f"_{escaped}_"

    @abstractmethod
    def link(self, address: str, escaped: str) -> str:
        """Returns a link that shows an escaped text."""

    @abstractmethod
    def address(self, address: str) -> str:
        """Returns an http address as a link that shows itself."""

    @abstractmethod
    def body(self, text: str) -> dict[str, Any]:
        """Returns the body of the request that posts a text."""


class SlackMarkup(Markup):
    """Slack's mrkdwn, which Mattermost and Rocket.Chat take too.

    See https://docs.slack.dev/messaging/formatting-message-text.
    """

    def escape(self, text: str) -> str:
        """Escapes the control characters, and separates the `@` of mentions of channels."""
        return _CHANNEL_MENTION.sub("@\u200b", text).translate(_SLACK_ESCAPES)

    def bold(self, escaped: str) -> str:
        """Writes between asterisks."""
        return f"*{escaped}*"

    def link(self, address: str, escaped: str) -> str:
        """Writes the address before the text."""
        return f"<{address}|{escaped}>"

    def address(self, address: str) -> str:
        """Escapes the address, which Slack makes a link."""
        return self.escape(address)

    def body(self, text: str) -> dict[str, Any]:
        """Writes the text as incoming webhooks take it."""
        return {"text": text}


class DiscordMarkup(Markup):
    """Discord's Markdown. The address of a link is in angle brackets, so that Discord shows no preview of it.

    See https://docs.discord.com/developers/resources/webhook#execute-webhook for the body, and
    https://docs.discord.com/developers/resources/message#allowed-mentions-object: an empty `parse` notifies nobody.
    """

    def escape(self, text: str) -> str:
        """Writes a backslash before each special character."""
        return _DISCORD_SPECIALS.sub(r"\\\g<0>", text)

    def bold(self, escaped: str) -> str:
        """Writes between two asterisks."""
        return f"**{escaped}**"

    def link(self, address: str, escaped: str) -> str:
        """Writes the text before the address."""
        return f"[{escaped}]({self.address(address)})"

    def address(self, address: str) -> str:
        """Writes the address in angle brackets."""
        return f"<{address.translate(_UNSAFE_IN_ADDRESS)}>"

    def body(self, text: str) -> dict[str, Any]:
        """Writes the text as webhooks of Discord take it."""
        return {"content": text, "allowed_mentions": {"parse": []}}

"""Markup of chat systems shows texts of people as they are, notifies nobody and hides no address."""

import pytest

from jobs.webhooks.markup import DiscordMarkup, SlackMarkup

SLACK, DISCORD = SlackMarkup(), DiscordMarkup()


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("AT&T <!here>", "AT&amp;T &lt;!here&gt;"),
        ("@Everyone", "@\u200bEveryone"),
        ("*a* _b_", "*a* _b_"),
    ],
)
def test_slack_shows_text_as_it_is(text: str, escaped: str) -> None:
    assert SLACK.escape(text) == escaped


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("*a* _b_ ~c~ `d` ||e||", r"\*a\* \_b\_ \~c\~ \`d\` \|\|e\|\|"),
        ("[good](https://evil.example)", r"\[good\]\(https\://evil.example\)"),
        ("<@123> <#4> @everyone", r"\<\@123\> \<\#4\> \@everyone"),
        ("# Title", r"\# Title"),
        ("- item", r"\- item"),
        ("C:\\temp & more", r"C\:\\temp & more"),
        ("潮が満ちる", "潮が満ちる"),
    ],
)
def test_discord_shows_text_as_it_is(text: str, escaped: str) -> None:
    assert DISCORD.escape(text) == escaped


def test_links_show_their_text() -> None:
    address = "https://noroshi.example.org/#/post/1"
    assert SLACK.link(address, "a post") == f"<{address}|a post>"
    assert DISCORD.link(address, "a post") == f"[a post](<{address}>)"


def test_address_is_a_link_that_shows_itself() -> None:
    assert SLACK.address("https://example.org/?a=1&b=2") == "https://example.org/?a=1&amp;b=2"
    assert DISCORD.address("https://example.org/a_b_c") == "<https://example.org/a_b_c>"
    assert DISCORD.address("https://example.org/(x)>[y](z") == "<https://example.org/%28x%29%3E[y]%28z>"


def test_bold_and_italic_texts() -> None:
    assert (SLACK.bold("Ann"), SLACK.italic("deleted")) == ("*Ann*", "_deleted_")
    assert (DISCORD.bold("Ann"), DISCORD.italic("deleted")) == ("**Ann**", "_deleted_")


def test_body_of_discord_notifies_nobody() -> None:
    assert SLACK.body("hi") == {"text": "hi"}
    assert DISCORD.body("hi") == {"content": "hi", "allowed_mentions": {"parse": []}}

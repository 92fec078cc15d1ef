"""Deterministic conversations of the demo users, generated from handwritten scenes.

A scene is a block of lines in scenes.txt. A line begins with the letter of its speaker. `@A` mentions the speaker A,
`{peak}` is replaced by one of the words below, and a last word like `#tea` is a stamp.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from server.demo.cast import BLOCKED, BLOCKER, DemoCommunity, DemoTopic

SCENES = Path(__file__).with_name("scenes.txt")
WORDS: dict[str, tuple[str, ...]] = {
    "peak": ("高尾山", "陣馬山", "塔ノ岳", "金時山", "筑波山", "御岳山", "丹沢山", "大山"),
    "station": ("新宿駅", "高尾駅", "秦野駅", "奥多摩駅", "町田駅"),
    "hour": ("6", "7", "8", "9", "10"),
    "day": ("土曜", "日曜", "来週の土曜", "祝日", "金曜の夜"),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    "dish": ("肉じゃが", "筑前煮", "親子丼", "麻婆豆腐", "鯖の味噌煮", "ミネストローネ", "カレー", "おでん"),
    "herb": ("thyme", "shiso", "coriander", "dill", "mitsuba", "basil"),
    "tea": ("ほうじ茶", "煎茶", "玄米茶", "番茶", "アールグレイ", "ルイボス", "和紅茶"),
    "sweet": ("大福", "羊羹", "どら焼き", "scones", "banana bread", "カステラ", "shortbread"),
    "book": ("「こころ」", "「銀河鉄道の夜」", "「細雪」", "Kokoro", "Mrs Dalloway", "「草枕」", "Middlemarch"),
    "chapter": ("3", "5", "8", "11", "14"),
    "game": ("カタン", "Azul", "Wingspan", "囲碁", "どうぶつしょうぎ", "Codenames", "花札"),
    "film": ("東京物語", "Tampopo", "Local Hero", "羅生門", "Paterson", "七人の侍"),
    "lens": ("35mm", "50mm", "85mm", "28mm"),
    "gear": ("雨具", "ザック", "ヘッドライト", "登山靴", "ストック", "寝袋"),
    "brew": ("flat white", "filter coffee", "ほうじ茶ラテ", "decaf"),
    "version": ("4.18", "4.19", "5.0-rc1", "4.18.2", "5.0"),
    "service": ("billing", "search", "the gateway", "notifications", "the importer"),
    "minutes": ("5", "10", "15", "20", "30"),
    "count": ("2", "3", "4", "5", "6"),
    "percent": ("12", "18", "25", "31", "40"),
    "place": ("the taco stand", "the noodle bar", "the new deli", "the canteen", "the falafel van"),
}

# Remarks between two scenes, by language.
ASIDES: dict[str, tuple[str, ...]] = {
    "ja": (
        "なるほど！",
        "いいですね〜",
        "👍",
        "賛成です。",
        "あとで読みます。",
        "了解しました。",
        "気になる……",
        "✨",
    ),
    "en": ("Nice!", "👍", "Same here.", "Good point.", "Ha!", "Reading this later.", "Agreed.", "🎉", "Interesting…"),
}
EMOJI = ("👍", "❤️", "😂", "🎉", "🙏", "👀", "🔥", "🍵", "🏔️", "✨", "😮", "👏")
ASIDE_SHARE = 0.18
REACTION_SHARE = 0.16
# Numbers of unread messages, of which one is chosen for each member. None: the member never opened the topic.
UNREAD_CHOICES = (0, 0, 0, 1, 3, 7, 20, 60, None)

_LINE = re.compile(r"([A-C]) (.*?)(?: ?#([a-z-]+))?")


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """A message to post: the author's handle, and a text, a stamp or both."""

    author: str
    text: str
    stamp_id: str | None = None


@dataclass(frozen=True, slots=True)
class DemoReaction:
    """An emoji of a member (a handle) on the line with index `line`."""

    line: int
    author: str
    emoji: str


@dataclass(frozen=True, slots=True)
class DemoConversation:
    """Lines in order, the reactions to them, and the index of the last line that each handle has read."""

    lines: list[ConversationLine]
    reactions: list[DemoReaction]
    read: dict[str, int]


@cache
def scenes() -> dict[str, list[list[str]]]:
    """Returns the handwritten scenes by theme, each as its lines."""
    themes = (SCENES.read_text("utf-8")).removeprefix("== ").split("\n== ")
    named = (theme.strip().split("\n\n") for theme in themes)
    return {name: [scene.splitlines() for scene in written] for name, *written in named}


def conversation(community: DemoCommunity, topic: DemoTopic) -> DemoConversation:
    """Returns the conversation of a topic: the same on each call. The last line has no reactions."""
    rng = random.Random(f"{community.key}/{topic.title}")  # noqa: S311 - conversations must be reproducible
    lines = list(islice(_endless_lines(topic.theme, community, rng), topic.size))
    reactions = [each for n, line in enumerate(lines[:-1]) for each in _reactions(n, line.author, community, rng)]
    unread = {member: rng.choice(UNREAD_CHOICES) for member in community.members}
    counts = {member: count for member, count in unread.items() if count is not None and count < topic.size}
    read = {member: topic.size - 1 - count for member, count in counts.items()}
    return DemoConversation(lines, reactions, read)


def _endless_lines(theme: str, community: DemoCommunity, rng: random.Random) -> Iterator[ConversationLine]:
    """Yields lines of scenes without end. Each scene appears once before any is repeated."""
    while True:
        for scene in rng.sample(scenes()[theme], len(scenes()[theme])):
            cast = dict(zip("ABC", rng.sample(community.members, 3), strict=True))
            words = {slot: rng.choice(choices) for slot, choices in WORDS.items()}
            yield from (_parse_line(line, cast, words) for line in scene)
            if rng.random() < ASIDE_SHARE:
                yield ConversationLine(rng.choice(community.members), rng.choice(ASIDES[community.language]))


def _parse_line(line: str, cast: dict[str, str], words: dict[str, str]) -> ConversationLine:
    match = _LINE.fullmatch(line)
    assert match is not None, f"not a line of a scene: {line}"
    speaker, text, stamp_id = match.groups()
    mentioned = re.sub(r"@([A-C])\b", lambda letter: f"@{cast[letter[1]]}", text)
    return ConversationLine(cast[speaker], mentioned.format_map(words), stamp_id)


def _reactions(n: int, author: str, community: DemoCommunity, rng: random.Random) -> Iterator[DemoReaction]:
    """Yields reactions of members other than the author. A member who blocked the author never reacts."""
    others = [member for member in community.members if member != author and (member, author) != (BLOCKER, BLOCKED)]
    if rng.random() < REACTION_SHARE:
        for emoji in rng.sample(EMOJI, rng.choice((1, 1, 2))):
            for member in rng.sample(others, rng.randint(1, min(3, len(others)))):
                yield DemoReaction(n, member, emoji)

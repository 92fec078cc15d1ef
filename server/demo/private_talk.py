"""Direct messages of the demo, a thread, and what people answer to posts."""

from dataclasses import dataclass

from server.demo.pictures import BEACON, SUNRISE, Landscape


@dataclass(frozen=True, slots=True)
class DemoPicture:
    """A picture to attach, with its file name and its alternative text."""

    landscape: Landscape
    file_name: str
    alt_text: str


@dataclass(frozen=True, slots=True)
class DirectLine:
    """A direct message: its author's handle, text and pictures."""

    author: str
    text: str
    pictures: tuple[DemoPicture, ...] = ()


@dataclass(frozen=True, slots=True)
class DirectTalk:
    """A conversation by direct messages. The first of the people starts it. A group has a name."""

    key: str
    people: tuple[str, ...]
    name: str
    lines: tuple[DirectLine, ...]


PICTURES = (
    DemoPicture(SUNRISE, "朝の丘.png", "日の出の丘。遠くの山が三つ重なって見える。"),
    DemoPicture(BEACON, "狼煙台.png", "夜の丘の上で、狼煙台の火が明るく燃えている。"),
)

TALKS: tuple[DirectTalk, ...] = (
    DirectTalk(
        "demo-talk-sora",
        ("sora", "hana"),
        "",
        (DirectLine("sora", "明日の図書室、席はまだありますか？"), DirectLine("sora", "本も返しに行きます 📚")),
    ),
    DirectTalk(
        "demo-talk-ken",
        ("ken", "hana"),
        "",
        (
            DirectLine("ken", "写真をありがとう。来週の道順を送ります。"),
            DirectLine("hana", "助かります！ **8時** に駅でいいですか？"),
            DirectLine("ken", "はい。お昼は `11:30` に山頂の予定です。"),
        ),
    ),
    DirectTalk(
        "demo-talk-festival",
        ("hana", "yuki", "emma", "ken"),
        "収穫祭の準備",
        (
            DirectLine("yuki", "お鍋は私が持っていきます。何人くらいですか？"),
            DirectLine("hana", "二十人くらいです。ありがとう！"),
            DirectLine("emma", "I'll bring *three* kinds of apples."),
            DirectLine("hana", "下見に行ってきました。火はここで焚きます。", PICTURES),
            DirectLine("ken", "いい眺め！"),
            DirectLine("emma", "Beautiful. Can we see it from the old town hall?"),
        ),
    ),
)

THREAD_REPLIES: tuple[tuple[str, str], ...] = (
    ("ken", "地図を見ました。沢の道のほうが楽です。"),
    ("emma", "Then I can come too!"),
    ("yuki", "帰りにお茶を飲みませんか？"),
)
"""Author and text of each reply to the last message of the first topic."""

REPLIES_TO_POST: tuple[tuple[str, str], ...] = (
    ("ken", "地図はまかせて！コースは二つ考えています。"),
    ("yuki", "低い山なら参加できます 🙌"),
    ("emma", "Is the tea house at the top open in December?"),
)
"""Author and text of each reply to the first post."""

REACTIONS_TO_POST = (("ken", "🔥"), ("yuki", "🔥"), ("emma", "⛰️"))
QUOTE_OF_POST = ("emma", "Join us. It's the walk where the smoke signals were.")
REPOST_BY = "ken"

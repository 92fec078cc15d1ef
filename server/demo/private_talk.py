"""Direct messages of the demo, threads, and what people answer to posts."""

from dataclasses import dataclass

from server.demo.drawings import LANDSCAPE, Drawing


@dataclass(frozen=True, slots=True)
class DemoPicture:
    """A picture to attach, with its file name and its alternative text."""

    drawing: Drawing
    file_name: str
    alt_text: str


@dataclass(frozen=True, slots=True)
class DirectLine:
    """A direct message: its author's handle, text, pictures, and the index of the earlier line that it quotes."""

    author: str
    text: str
    pictures: tuple[DemoPicture, ...] = ()
    quoted: int | None = None


@dataclass(frozen=True, slots=True)
class DemoReply:
    """A message of a thread: its author's handle and its text."""

    author: str
    text: str


@dataclass(frozen=True, slots=True)
class DirectThread:
    """The replies to the line with the index `parent`."""

    parent: int
    replies: tuple[DemoReply, ...]


@dataclass(frozen=True, slots=True)
class DirectTalk:
    """A conversation by direct messages. The first of the people starts it. A group has a name."""

    key: str
    people: tuple[str, ...]
    name: str
    lines: tuple[DirectLine, ...]
    thread: DirectThread | None = None


PICTURES = (
    DemoPicture(
        Drawing("hills", "#f0785a #ffd696 #785a6e #2d263c #fff5d7", LANDSCAPE),
        "朝の丘.png",
        "日の出の丘。遠くの山が三つ重なって見える。",
    ),
    DemoPicture(
        Drawing("beacon", "#0f122d #28325a #1e243e #0a0c1a #ff963c", LANDSCAPE),
        "狼煙台.png",
        "夜の丘の上で、狼煙台の火が明るく燃えている。",
    ),
)

TALKS: tuple[DirectTalk, ...] = (
    DirectTalk(
        "demo-talk-nagi",
        ("nagi", "hana"),
        "",
        (DirectLine("nagi", "はじめまして。収穫祭の張り紙を見ました。火の番をお手伝いできますか？"),),
    ),
    DirectTalk(
        "demo-talk-oscar",
        ("oscar", "priya"),
        "",
        (DirectLine("oscar", "Hello Priya! I start on Monday. May I come to the demo hour, just to watch?"),),
    ),
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
            DirectLine("hana", "では、そのころにお湯を沸かしておきますね。", quoted=2),
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
            DirectLine("yuki", "この火で焼いてもおいしそうです 🍎", quoted=2),
        ),
        DirectThread(
            5,
            (
                DemoReply("ken", "見えますよ。二階の窓がいちばんです。"),
                DemoReply("hana", "その時間だけ、部屋の明かりを消してもらいましょう。"),
                DemoReply("emma", "Then I'll watch from up there with the children."),
                DemoReply("yuki", "あとで温かいお茶を届けますね 🍵"),
            ),
        ),
    ),
    DirectTalk(
        "demo-talk-lake",
        ("priya", "liam", "noor"),
        "Two days at the lake",
        (
            DirectLine("priya", "The house at the lake is ours from *Thursday* to *Friday*."),
            DirectLine("noor", "Lovely! Are there boats?"),
            DirectLine("priya", "**Four**, and one of them leaks."),
            DirectLine("liam", "I'll bring a bucket.", quoted=2),
            DirectLine("noor", "Our train leaves at `08:40` from platform 3. Shall I get the tickets?"),
        ),
        DirectThread(
            4,
            (
                DemoReply("liam", "Yes, please! My bike needs one as well."),
                DemoReply("priya", "One for me. Thank you!"),
                DemoReply("noor", "Done. We sit together, and the bike has the window."),
                DemoReply("liam", "It will be so pleased 🚲"),
            ),
        ),
    ),
)

THREAD_REPLIES: tuple[DemoReply, ...] = (
    DemoReply("ken", "地図を見ました。次は沢の道のほうが楽です。"),
    DemoReply("hana", "では、沢の道にしましょう。"),
    DemoReply("emma", "Then I can come too!"),
    DemoReply("yuki", "帰りにお茶を飲みませんか？"),
)
"""The replies to the last message of the first topic. Hana follows the thread, and has not read the last two."""

REPLIES_TO_POST: tuple[tuple[str, str], ...] = (
    ("ken", "地図はまかせて！コースは二つ考えています。"),
    ("yuki", "低い山なら参加できます 🙌"),
    ("emma", "Is the tea house at the top open in December?"),
)
"""Author and text of each reply to the first post."""

REACTIONS_TO_POST = (("ken", "🔥"), ("yuki", "🔥"), ("emma", "⛰️"))
QUOTE_OF_POST = ("emma", "Join us. It's the walk where the smoke signals were.")
REPOST_BY = "ken"

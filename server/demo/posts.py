"""The demo users' posts and follows."""

from collections.abc import Iterator

from server.demo.cast import BLOCKED, BLOCKER, DEMO_USERS, STRANGERS, DemoUser, user

_POSTS: tuple[tuple[str, str], ...] = (
    ("hana", "のろし山の朝焼け。来月の #山歩会 は低い山にします。 @ken 地図をお願い！"),
    ("ken", "新しい靴で足慣らし。二時間で靴ずれなし #gear"),
    ("yuki", "今日は大根とお揚げの味噌汁 #台所だより"),
    ("emma", "First frost on the allotment. Everything smells of smoke and apples. #autumn"),
    ("sora", "図書室で借りた本、三日で読み終えた。続きはどこ？ #読書"),
    ("hana", "町の図書室の #ボードゲーム の夜、来週の金曜です。"),
    ("ken", "山頂から見た狼煙台。昔はここから次の山へ知らせたそうです #山歩会"),
    ("yuki", "Tea tasting at home: three kinds of hojicha, one clear winner. #tea"),
    ("emma", "Does anybody lend a tent for the second weekend? @hana @ken #gear"),
    ("sora", "写真の整理をはじめました。去年の #山歩会 から。"),
    ("priya", "Release 42 is out, and nobody noticed. Best kind. #releases"),
    ("liam", "Quiet night on call. Wrote down why. @priya #oncall"),
    ("noor", "New lunch place by the canal: get the flatbread. #lunch"),
    ("priya", "Idea for Friday: everybody shows one thing they deleted. @noor @liam #ideas"),
)


def posts() -> Iterator[tuple[str, DemoUser, str]]:
    """Returns each post as idempotency key, author and text. An author's posts are created in this order."""
    return ((f"demo-post-{n}", user(handle), text) for n, (handle, text) in enumerate(_POSTS))


def follows() -> Iterator[tuple[DemoUser, DemoUser]]:
    """Yields (follower, followed user) for all pairs of users of one organization, except for the pair with a block.

    Strangers neither follow nor are followed.
    """
    acquainted = [each for each in DEMO_USERS if each.handle not in STRANGERS]
    for follower in acquainted:
        for followed in acquainted:
            are_colleagues = follower.organization_id == followed.organization_id and follower != followed
            if are_colleagues and {follower.handle, followed.handle} != {BLOCKER, BLOCKED}:
                yield follower, followed

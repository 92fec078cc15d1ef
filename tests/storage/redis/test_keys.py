"""Redis keys and channels."""

from storage.redis.keys import RedisKeys


def test_names_are_distinct_and_start_with_the_prefix() -> None:
    one, other = RedisKeys("one"), RedisKeys("other")
    for keys in (one, other):
        names = [keys.channel("topic:t"), keys.queue("previews")]
        names += [keys.online("acme"), keys.typing("t")]
        assert all(name.startswith(f"{keys.prefix}:") for name in names)
        assert len(set(names)) == len(names)


def test_channel_ends_with_the_stream_name() -> None:
    assert RedisKeys("p").channel("user:a/b:c") == RedisKeys("p").channel("") + "user:a/b:c"

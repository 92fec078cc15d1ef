"""Names in Redis."""

from storage.keys import Keys


def test_every_name_begins_with_the_database_so_that_products_can_share_a_redis() -> None:
    one, other = Keys("one"), Keys("other")
    for keys in (one, other):
        names = [keys.channel("topic:t"), *keys.write_lease("topic:t"), keys.queue("previews"), *keys.hot_page("t")]
        assert all(name.startswith(f"{keys.prefix}:") for name in names)
        assert len(set(names)) == len(names)


def test_a_streams_channel_holds_its_name_at_the_end() -> None:
    assert Keys("p").channel("user:a/b:c") == Keys("p").channel("") + "user:a/b:c"

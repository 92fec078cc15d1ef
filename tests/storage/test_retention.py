"""Collections and Redis keys have documented lifetimes, and TTL indexes delete documents after the documented time."""

from storage.indexes import INDEXES
from storage.redis.keys import RedisKeys
from tests.retention import collection_retentions, redis_retentions


def test_every_collection_has_a_documented_lifetime() -> None:
    documented = {name for row in collection_retentions() for name in row.names}
    assert documented == INDEXES.keys()


def test_ttl_indexes_have_the_documented_lifetimes() -> None:
    declared = {
        (name, float(model.document["expireAfterSeconds"]))
        for name, models in INDEXES.items()
        for model in models
        if "expireAfterSeconds" in model.document
    }
    rows = [row for row in collection_retentions() if row.deleted_by == "TTL index"]
    assert declared == {(name, row.seconds) for row in rows for name in row.names}


def test_every_redis_key_has_a_documented_lifetime() -> None:
    keys = RedisKeys("<database>")
    names = {keys.queue("<name>"), keys.online("<organization>"), keys.typing("<topic>")}
    documented = {name for row in redis_retentions() for name in row.names}
    assert names <= documented

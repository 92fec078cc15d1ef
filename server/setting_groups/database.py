"""Settings of MongoDB and Redis."""

from typing import Literal

from pydantic_settings import BaseSettings

from server.setting_groups.values import MongoAddress, RedisAddress, setting

UNPREFIXED = {"mongodb_uri": "MONGODB_URI", "redis_url": "REDIS_URL"}


class DatabaseSettings(BaseSettings):
    """The addresses of the databases, and the driver."""

    mongodb_uri: MongoAddress | None = setting(
        None,
        validation_alias=UNPREFIXED["mongodb_uri"],
        secret=True,
        expected="mongodb://host:port/?replicaSet=..",
        description="The MongoDB replica set, version 6.0 or later. If unset, `noroshi up` starts an embedded MongoDB.",
    )
    redis_url: RedisAddress | None = setting(
        None,
        validation_alias=UNPREFIXED["redis_url"],
        secret=True,
        expected="redis://host:port/number or redis+sentinel://host:port,host:port/master/number",
        description="Redis 6.2 or later, or Valkey. `rediss` uses TLS. If unset, `noroshi up` starts a Valkey.",
    )
    database: str = setting(
        "noroshi",
        pattern=r"^[A-Za-z0-9_-]{1,38}$",
        expected="a name of 1 to 38 letters, digits, _ and -",
        description="The name of the MongoDB database, and the prefix of Redis keys and channels.",
    )
    mongo_driver: Literal["motor", "pymongo"] = setting(
        "pymongo",
        expected="motor or pymongo",
        description="The MongoDB driver: PyMongo's own asyncio client, or Motor, which is deprecated and slower.",
    )

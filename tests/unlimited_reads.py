"""Finds reads of the product that MongoDB would not end: its profiler records the reads without `maxTimeMS`.

Unlike PyMongo's command monitoring, the profiler sees the reads of both drivers, and reads without a driver's cursor.
"""

from typing import Any

from pymongo.database import Database

_READS = ("find", "aggregate", "count", "distinct")
_IS_READ = {"$or": [{f"command.{name}": {"$exists": True}} for name in _READS]}
_FILTER = {
    "appName": "noroshi",
    "$or": [
        {"op": {"$ne": "getmore"}, **_IS_READ, "command.maxTimeMS": {"$exists": False}},
        # A getMore has the time that is left of the limit of its cursor's first command.
        {"op": "getmore", "originatingCommand.maxTimeMS": {"$exists": False}},
    ],
}


def record_unlimited_reads(database: Database[Any]) -> None:
    """Clears the profiler's records of this database, and makes it record the product's reads without a time limit."""
    database.command("profile", 0)
    database.drop_collection("system.profile")
    database.command("profile", 1, filter=_FILTER)


def profiler_settings(database: Database[Any]) -> tuple[int, Any]:
    """Returns the level and the filter of the profiler, which a test may have changed."""
    settings = database.command("profile", -1)
    return settings["was"], settings.get("filter")


def check_reads(database: Database[Any]) -> None:
    """Fails if the profiler recorded a read of the product without a time limit."""
    unlimited = [f"{entry['ns']}: {entry['command']}" for entry in database["system.profile"].find(_FILTER)]
    assert not unlimited, f"Without maxTimeMS (see storage/mongo/time_limits.py): {unlimited}"

"""The catalogue of stamps: pictures to answer with, the same for everybody and part of the program.

A stamp never leaves the catalogue, because messages keep its id; the pictures lie in server/stamps.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stamp:
    """One picture; `image_url` is relative to the server's origin."""

    id: str
    name: str
    image_url: str


def _stamp(id_: str, name: str) -> Stamp:
    return Stamp(id_, name, f"/stamps/{id_}.svg")


STAMPS: tuple[Stamp, ...] = (
    _stamp("hello", "Hello"),
    _stamp("thanks", "Thank you"),
    _stamp("laugh", "Laughing"),
    _stamp("cry", "Crying"),
    _stamp("beacon", "The beacon is lit"),
    _stamp("good-night", "Good night"),
    _stamp("congratulations", "Congratulations"),
    _stamp("ok", "OK"),
    _stamp("question", "Question"),
    _stamp("applause", "Applause"),
    _stamp("rain", "Rain"),
    _stamp("tea", "Tea"),
)
_BY_ID = {each.id: each for each in STAMPS}


def stamp(id_: str) -> Stamp | None:
    """The stamp of that id, or None."""
    return _BY_ID.get(id_)

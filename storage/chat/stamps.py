"""The catalogue of stamps, which is part of the program and the same for every organization.

A stamp is never removed from the catalogue, since messages store its id. Pictures are files of server/stamps.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stamp:
    """A picture that a message can consist of. `image_url` is relative to the server's origin."""

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


def find_stamp(id_: str) -> Stamp | None:
    """Returns the stamp with this id, or None."""
    return _BY_ID.get(id_)

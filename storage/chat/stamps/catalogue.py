"""The stamps of the program, which are the same for every organization, and the ids of the organizations' own stamps.

A stamp of the program is never removed, since messages store its id. Its picture is a file of server/stamps. The id of
an organization's own stamp has its name and its file, so that a page with such stamps reads nothing more.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stamp:
    """A picture that a message can consist of. The paths are relative to the server's origin."""

    id: str
    name: str
    image_url: str
    thumbnail_url: str
    emoji: str | None = None
    """The reaction with this picture; None for a stamp of the program."""


def _stamp(id_: str, name: str) -> Stamp:
    path = f"/stamps/{id_}.svg"
    return Stamp(id_, name, path, path)


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


SEPARATOR = "."
"""Stands between the name and the file in the id of an organization's own stamp."""


def own_stamp(name: str, file_id: str) -> Stamp:
    """Returns an organization's own stamp."""
    path = f"/files/{file_id}"
    return Stamp(f"{name}{SEPARATOR}{file_id}", name, f"{path}/{name}", f"{path}/thumbnail", f":{name}:")


def find_stamp(id_: str) -> Stamp | None:
    """Returns the stamp with this id, or None.

    The organization's own stamp is also returned after its removal. Then its paths lead to nothing.
    """
    name, separator, file_id = id_.partition(SEPARATOR)
    return own_stamp(name, file_id) if separator else _BY_ID.get(id_)

"""The catalogue of stamps."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stamp:
    """A picture to answer with; `image_url` is relative to the origin."""

    id: str
    name: str
    image_url: str


STAMPS: tuple[Stamp, ...] = (Stamp("hello", "Hello", "/stamps/hello.svg"),)


def stamp(id_: str) -> Stamp | None:
    """The stamp of that id, or None."""
    return next((each for each in STAMPS if each.id == id_), None)

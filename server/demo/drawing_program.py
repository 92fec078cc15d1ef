"""The program that draws the demo's pictures: it reads a JSON list of drawings, and writes one of PNG files in base64.

`drawings.py` starts it as a script, so that no process of the product imports Pillow. It opens no files. Equal drawings
give equal bytes.
"""

import base64
import io
import json
import math
import random
import sys
from collections.abc import Callable, Sequence

from PIL import Image, ImageChops, ImageColor, ImageDraw, ImageOps

OVERSAMPLING = 2
"""Pictures are drawn larger and then reduced, which smooths the edges."""

Point = tuple[float, float]


class Canvas:
    """A picture in progress. Lengths are parts of its height, from the middle of its upper edge."""

    def __init__(self, size: Sequence[int], top: str, horizon: str) -> None:
        width, self._unit = (side * OVERSAMPLING for side in size)
        self.half = width / self._unit / 2
        self.image = ImageOps.colorize(Image.linear_gradient("L").resize((width, self._unit)), top, horizon)
        self._draw = ImageDraw.Draw(self.image)

    def polygon(self, colour: str, *points: Point) -> None:
        self._draw.polygon([((self.half + x) * self._unit, y * self._unit) for x, y in points], fill=colour)

    def block(self, colour: str, left: float, top: float, right: float, bottom: float) -> None:
        self._draw.rectangle(self.box(left, top, right, bottom), fill=colour)

    def disc(self, colour: str, x: float, y: float, radius: float, angle: int = 360) -> None:
        """Draws a disc, or the part of it between the right and the angle."""
        self._draw.pieslice(self.box(x - radius, y - radius, x + radius, y + radius), 0, angle, fill=colour)

    def glow(self, colour: str, x: float, y: float, radius: float) -> None:
        """Lights the surroundings of a point."""
        left, top, right, _ = map(round, self.box(x - radius, y - radius, x + radius, y + radius))
        light = ImageOps.invert(Image.radial_gradient("L")).point(lambda value: max(0, value - 76))
        self.image.paste(colour, (left, top), light.resize((right - left, right - left)))

    def hills(self, colour: str, level: float, swing: float, phase: float) -> None:
        """Draws hills down to the lower edge."""
        across = [self.half * n / 80 for n in range(-80, 81)]
        ups = [math.sin(4.1 * x + phase) + 0.5 * math.sin(7.3 * x + 2 * phase) for x in across]
        ridge = [(x, level - swing * up) for x, up in zip(across, ups, strict=True)]
        self.polygon(colour, *ridge, (self.half, 1.01), (-self.half, 1.01))

    def stars(self, colour: str, count: int) -> None:
        rng = random.Random(count)  # noqa: S311 - pictures must be reproducible
        for _ in range(count):
            x, y, radius = rng.uniform(-self.half, self.half), rng.uniform(0, 0.75), rng.choice((0.004, 0.006, 0.012))
            self.disc(colour, x, y, radius)

    def fire(self, colour: str, x: float, y: float, height: float) -> None:
        """Draws a flame that stands on a point, with its glow."""
        self.glow(colour, x, y - height / 2, 1.5 * height)
        for fill, part in ((colour, 1), ("#fff3c4", 0.55)):
            tall, wide = height * part, 0.3 * height * part
            self.disc(fill, x, y - wide, wide)
            shoulder = y - 1.3 * wide
            self.polygon(fill, (x - 0.95 * wide, shoulder), (x + 0.1 * wide, y - tall), (x + 0.95 * wide, shoulder))

    def smoke(self, colour: str, x: float, y: float, length: float) -> None:
        """Draws smoke that rises from a point and leans to the right."""
        mask = Image.new("L", self.image.size)
        draw = ImageDraw.Draw(mask)
        for n in range(80):
            part = n / 79
            middle = x + length * (0.3 * part**1.6 + 0.05 * math.sin(9 * part))
            up, radius = y - length * part, length * (0.03 + 0.11 * part)
            box = self.box(middle - radius, up - radius, middle + radius, up + radius)
            draw.ellipse(box, fill=round(230 - 140 * part))
        self.image.paste(colour, mask=mask)

    def box(self, left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
        """Returns the corners in pixels."""
        across = self.half * self._unit
        return left * self._unit + across, top * self._unit, right * self._unit + across, bottom * self._unit


def shades(far: str, near: str) -> list[str]:
    """Returns the colours of three hills, from the farthest to the nearest."""
    pairs = zip(ImageColor.getrgb(far), ImageColor.getrgb(near), strict=True)
    return [far, "#" + "".join(f"{(a + b) // 2:02x}" for a, b in pairs), near]


def beacon(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws a fire on the nearest hill, with its smoke."""
    on.hills(far, 0.7, 0.07, 2.0)
    on.smoke("#f7e9e6", 0.02, 0.52, 0.6)
    on.disc(near, 0, 1.56, 0.86)
    on.polygon(near, (-0.13, 0.64), (0.13, 0.64), (0.08, 0.74), (-0.08, 0.74))
    on.fire(light, 0, 0.66, 0.27)


def beacons(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws fires from hill to hill, the farthest the smallest."""
    on.hills(far, 0.74, 0.03, 0.4)
    for number, colour in enumerate(shades(far, near)):
        x, top = (0.58 - 0.52 * number) * on.half, 0.4 + 0.18 * number
        width = 0.15 + 0.5 * on.half
        on.polygon(colour, *((x + width * n / 20, top + 0.55 * (n / 20) ** 2) for n in range(-30, 31)))
        on.fire(light, x, top + 0.01, 0.13 + 0.08 * number)


def hills(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws hills behind hills, with the sun above."""
    on.glow(light, -0.3 * on.half, 0.38, 0.5)
    on.disc(light, -0.3 * on.half, 0.38, 0.11)
    for n, colour in enumerate(shades(far, near)):
        on.hills(colour, 0.56 + 0.15 * n, 0.07, 0.7 + 2.1 * n)


def summit(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws a mountain with snow."""
    on.polygon(far, (-0.75, 1), (-0.28, 0.48), (0.1, 1))
    on.polygon(near, (-0.55, 1), (0.08, 0.2), (0.72, 1))
    on.polygon(light, (0.08, 0.2), (-0.13, 0.466), (-0.03, 0.42), (0.06, 0.52), (0.16, 0.43), (0.28, 0.45))
    on.hills(far, 0.9, 0.03, 1.0)


def pines(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws pines in the snow."""
    on.hills(far, 0.74, 0.04, 0.3)
    for x, y, height in ((-0.24, 0.8, 0.42), (0.25, 0.82, 0.5), (0.02, 0.88, 0.66)):
        for n in range(3):
            top, wide = y - height * (1 - 0.24 * n), height * (0.17 + 0.08 * n)
            on.polygon(near, (x, top), (x - wide, top + 0.48 * height), (x + wide, top + 0.48 * height))
    on.hills(light, 0.86, 0.02, 2.4)
    on.stars(light, 70)


def fields(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws furrows that lead to the sun."""
    on.disc(light, 0, 0.42, 0.2)
    on.block(far, -on.half, 0.5, on.half, 1)
    for n in range(-5, 6):
        on.polygon(near, (0.045 * n, 0.5), (0.3 * n - 0.08, 1), (0.3 * n + 0.08, 1))


def moonrise(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws the moon over a calm sea."""
    on.glow(far, 0, 0.36, 0.6)
    on.disc(light, 0, 0.36, 0.19)
    on.block(near, -on.half, 0.62, on.half, 1)
    for n, wide in enumerate((0.2, 0.13, 0.17, 0.1, 0.06)):
        on.block(light, -wide, 0.66 + 0.065 * n, wide, 0.684 + 0.065 * n)


def lighthouse(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws a lighthouse with its beams."""
    for side in (-1.5, 1.5):
        on.polygon(far, (0, 0.3), (side, 0.02), (side, 0.42))
    on.hills(near, 0.86, 0.025, 1.4)
    on.polygon("#fdf6ee", (-0.08, 0.36), (0.08, 0.36), (0.13, 0.9), (-0.13, 0.9))
    on.polygon(near, (-0.093, 0.5), (0.093, 0.5), (0.107, 0.65), (-0.107, 0.65))
    on.polygon(near, (-0.1, 0.24), (0, 0.14), (0.1, 0.24))
    on.block(light, -0.07, 0.24, 0.07, 0.36)


def night(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws a crescent moon among stars."""
    on.stars(light, 60)
    moon, shade = Image.new("L", on.image.size), Image.new("L", on.image.size)
    ImageDraw.Draw(moon).ellipse(on.box(-0.26, 0.14, 0.26, 0.66), fill=255)
    ImageDraw.Draw(shade).ellipse(on.box(-0.09, 0.11, 0.35, 0.55), fill=255)
    on.image.paste(light, mask=ImageChops.subtract(moon, shade))
    on.hills(far, 0.84, 0.04, 5.0)
    on.hills(near, 0.93, 0.03, 1.0)


def sunrise(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws a sun with rings of light behind dunes."""
    for colour, radius in ((far, 0.46), (near, 0.34), (light, 0.22)):
        on.disc(colour, 0, 0.5, radius)
    on.hills(far, 0.72, 0.05, 2.7)
    on.hills(near, 0.86, 0.05, 0.4)


def bowl(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws a steaming bowl on a table."""
    on.block(far, -on.half, 0.78, on.half, 1)
    for x in (-0.2, -0.02, 0.16):
        on.smoke(light, x, 0.5, 0.38)
    on.polygon(near, (-0.11, 0.8), (0.11, 0.8), (0.13, 0.87), (-0.13, 0.87))
    on.disc(near, 0, 0.5, 0.34, angle=180)
    on.block(light, -0.34, 0.5, 0.34, 0.535)


def house(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws a house at night with light in its windows."""
    on.stars(light, 40)
    on.hills(far, 0.8, 0.05, 0.4)
    on.polygon(near, (-0.38, 0.48), (-0.22, 0.22), (0.22, 0.22), (0.38, 0.48))
    on.block(near, -0.3, 0.47, 0.3, 0.95)
    on.glow(light, 0, 0.65, 0.42)
    for left, top in ((-0.22, 0.52), (-0.07, 0.52), (0.08, 0.52), (-0.22, 0.7), (0.08, 0.7)):
        on.block(light, left, top, left + 0.14, top + 0.13)
    on.hills(far, 0.93, 0.02, 2.0)


def boat(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws a sailing boat."""
    on.polygon(light, (-0.02, 0.14), (-0.02, 0.64), (-0.34, 0.64))
    on.polygon(far, (0.02, 0.22), (0.02, 0.64), (0.26, 0.64))
    on.polygon(near, (-0.36, 0.68), (0.34, 0.68), (0.22, 0.86), (-0.24, 0.86))
    on.hills(far, 0.84, 0.02, 1.0)
    on.hills(near, 0.92, 0.02, 3.0)


def waves(on: Canvas, far: str, near: str, light: str) -> None:
    """Draws rows of waves like fish scales."""
    for row in range(5):
        for column in range(-2, 3):
            x, y = 0.6 * column + 0.3 * (row % 2), 0.3 + 0.24 * row
            for colour, radius in ((light, 0.3), (near, 0.26), (light, 0.19), (far, 0.15), (light, 0.07)):
                on.disc(colour, x, y, radius)


MOTIFS: dict[str, Callable[[Canvas, str, str, str], None]] = {
    each.__name__: each
    for each in (
        *(beacon, beacons, hills, summit, pines, fields, moonrise),
        *(lighthouse, night, sunrise, bowl, house, boat, waves),
    )
}


def draw(motif: str, colours: str, size: Sequence[int]) -> bytes:
    """Returns a drawing as a PNG file."""
    top, horizon, far, near, light = colours.split()
    canvas, file = Canvas(size, top, horizon), io.BytesIO()
    MOTIFS[motif](canvas, far, near, light)
    canvas.image.reduce(OVERSAMPLING).save(file, "PNG")
    return file.getvalue()


if __name__ == "__main__":
    files = [draw(**drawing) for drawing in json.load(sys.stdin)]
    json.dump([base64.b64encode(file).decode() for file in files], sys.stdout)

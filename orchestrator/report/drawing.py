"""A small vocabulary for charts in SVG: scales with round ticks, marks, and text that stays text.

Colours are named by class and come from a style sheet, so that one drawing serves light and dark
pages and a file on its own. Ids are never used: a drawing may stand twice in one page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from orchestrator.trace.untrusted import printable

Anchor = Literal["start", "middle", "end"]
_CHARACTER_EM = 0.56
"""Mean width of a character of Arial or Liberation Sans, in font sizes (measured on labels)."""
_NO_XML = re.compile("[\ufffe\uffff]")
"""Characters that XML 1.0 forbids and that `printable` does not spell out (section 2.2)."""


def text_of(value: object, limit: int = 0) -> str:
    """Text of others for a page or a drawing: on one line, spelled out, escaped.

    Args:
        value: Anything; `str` is taken of it.
        limit: Most characters before escaping; 0 keeps all.

    >>> text_of('<b>"x"')
    '&lt;b&gt;&quot;x&quot;'
    """
    text = str(value)
    if limit or not (text.isascii() and text.isprintable() and " " not in text):
        text = _NO_XML.sub("\ufffd", printable(text, limit))
    return escape(text, quote=True)


def coordinate(value: float) -> str:
    """A coordinate to a tenth of a pixel, as short as it can be written.

    >>> coordinate(3.0), coordinate(2.26), coordinate(-0.01)
    ('3', '2.3', '0')
    """
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear scale.

    Attributes:
        low: Value at `start`.
        high: Value at `end`, not `low`.
        start: Pixels.
        end: Pixels.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Pixels of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers within a range, at most so many: multiples of 1, 2 or 5 times a power of 10.

    >>> ticks(0.0, 97.0, 5)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    step = _step((high - low) / max(most, 1))
    while math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) + 1 > most:
        step = _step(step * 1.01)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def _step(least: float) -> float:
    """The smallest round step that is not below."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * m for m in (1.0, 2.0, 5.0, 10.0) if power * m >= least * (1 - 1e-9))


def tick_text(value: float) -> str:
    """A tick for people.

    >>> tick_text(0.2), tick_text(1500.0), tick_text(-3.0), tick_text(2e6)
    ('0.2', '1,500', '−3', '2M')
    """
    size = abs(value)
    if size >= 1e6:
        shown = f"{value / 1e6:.4g}M"
    elif size >= 1000:
        shown = f"{value:,.0f}"
    else:
        shown = f"{value:.4g}"
    return shown.replace("-", "−")


def wide(text: str, size_px: float = 11.0) -> float:
    """About how wide a text is, in pixels."""
    return len(text) * size_px * _CHARACTER_EM


def shortened(text: str, width_px: float, size_px: float = 11.0) -> str:
    """A text cut to about a width, with an ellipsis."""
    most = max(int(width_px / (size_px * _CHARACTER_EM)), 2)
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(slots=True)
class Drawing:
    """Marks in the order in which they are painted.

    Attributes:
        width: Pixels.
        height: Pixels; may grow while it is drawn.
        label: What it shows, for those who cannot see it. Plain text.
        steps: The level axis where it counts steps, so that a page can find the step of a click.
    """

    width: float
    height: float
    label: str = ""
    steps: Scale | None = None
    _marks: list[str] = field(default_factory=list)

    def path(self, points: str, style: str) -> None:
        """A path; nothing where it is empty. `points` is path data of ours, never of others."""
        if points:
            self._marks.append(f'<path class="{style}" d="{points}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A straight line."""
        c = coordinate
        self.path(f"M{c(x1)} {c(y1)}L{c(x2)} {c(y2)}", style)

    def rect(self, x: float, y: float, width: float, height: float, style: str) -> None:
        """A rectangle."""
        c = coordinate
        self._marks.append(
            f'<rect class="{style}" x="{c(x)}" y="{c(y)}"'
            f' width="{c(max(width, 0))}" height="{c(max(height, 0))}"/>'
        )

    def dot(self, x: float, y: float, radius: float, style: str, tip: str = "") -> None:
        """A circle, with a tip for the pointer."""
        c = coordinate
        tag = f'<circle class="{style}" cx="{c(x)}" cy="{c(y)}" r="{c(radius)}"'
        inner = f"><title>{text_of(tip, 200)}</title></circle>" if tip else "/>"
        self._marks.append(tag + inner)

    def text(
        self, x: float, y: float, words: str, style: str = "tx", anchor: Anchor = "start"
    ) -> None:
        """Text; what others wrote is made printable and escaped here."""
        c = coordinate
        at = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._marks.append(
            f'<text class="{style}" x="{c(x)}" y="{c(y)}"{at}>{text_of(words)}</text>'
        )

    def place(self, other: Drawing, x: float, y: float) -> None:
        """Another drawing, with its top left corner there."""
        c = coordinate
        self._marks.append(f'<g transform="translate({c(x)} {c(y)})">{other.marks()}</g>')

    def marks(self) -> str:
        """What was drawn, without the frame around it."""
        return "".join(self._marks)

    def svg(self, css: str = "", style: str = "fig") -> str:
        """The drawing as an element, or with `css` as a document of its own."""
        c = coordinate
        root = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{style}" role="img"'
            f' aria-label="{text_of(self.label)}" width="{c(self.width)}"'
            f' height="{c(self.height)}" viewBox="0 0 {c(self.width)} {c(self.height)}"'
            f"{self._axis()}>"
        )
        sheet = f'<style>{css}</style><rect class="paper" width="100%" height="100%"/>'
        return root + (sheet if css else "") + self.marks() + "</svg>"

    def _axis(self) -> str:
        if self.steps is None:
            return ""
        ends = coordinate(self.steps.start), coordinate(self.steps.end)
        last = coordinate(self.steps.high)
        return f' data-left="{ends[0]}" data-right="{ends[1]}" data-last="{last}"'


def polyline(points: Iterable[tuple[float, float]]) -> str:
    """Path data through points; a point that is not finite breaks the line."""
    parts: list[str] = []
    lifted = True
    for x, y in points:
        if not math.isfinite(y):
            lifted = True
            continue
        parts.append(f"{'M' if lifted else 'L'}{coordinate(x)} {coordinate(y)}")
        lifted = False
    return "".join(parts)


def ribbon(xs: Sequence[float], lower: Sequence[float], upper: Sequence[float]) -> str:
    """Path data of the area between two lines."""
    edge = [*zip(xs, lower, strict=True), *reversed(list(zip(xs, upper, strict=True)))]
    known = [point for point in edge if math.isfinite(point[1])]
    return polyline(known) + "Z" if len(known) > 2 else ""


def specks(points: Iterable[tuple[float, float]]) -> str:
    """Path data of dots: lines of no length, which round caps turn into discs."""
    c = coordinate
    return "".join(f"M{c(x)} {c(y)}h0" for x, y in points if math.isfinite(x) and math.isfinite(y))


def bars(spans: Iterable[tuple[float, float]], top: float, height: float) -> str:
    """Path data of rectangles from x to x, all of one height."""
    c = coordinate
    return "".join(
        f"M{c(x)} {c(top)}h{c(to - x)}v{c(height)}h{c(x - to)}z" for x, to in spans if to > x
    )


def thinned(xs: Sequence[float], ys: Sequence[float], most: int) -> tuple[list[float], list[float]]:
    """A line with at most about so many points that keeps each peak and each trough.

    Values are put into buckets of equal width; of each, the least and the greatest stay, in the
    order in which they came.

    Args:
        xs: In order.
        ys: As many.
        most: Points to keep, 4 or more.
    """
    if len(xs) <= most:
        return list(xs), list(ys)
    buckets = max(most // 2, 2)
    kept: list[int] = []
    for bucket in range(buckets):
        first, last = bucket * len(xs) // buckets, (bucket + 1) * len(xs) // buckets
        known = [place for place in range(first, last) if math.isfinite(ys[place])]
        if not known:
            kept.append(first)
            continue
        low = min(known, key=ys.__getitem__)
        high = max(known, key=ys.__getitem__)
        kept += sorted({low, high})
    return [xs[place] for place in kept], [ys[place] for place in kept]

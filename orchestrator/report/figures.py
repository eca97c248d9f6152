"""The course of an episode as figures: metrics against their targets, and what was decided when."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.console.metric_names import label
from orchestrator.report.drawing import (
    Drawing,
    Scale,
    bars,
    polyline,
    shortened,
    specks,
    thinned,
    tick_text,
    ticks,
    wide,
)
from orchestrator.report.gather import Account
from orchestrator.report.wording import kinds

_LEFT, _RIGHT, _TOP = 52.0, 14.0, 6.0
_PANEL, _GAP = 78.0, 34.0
_FOOT = 34.0
DOTS_UP_TO = 60
"""Most steps of which each is a point that says whether the target held."""
_MOST_LANES = 12
_LANE = 18.0
_COLUMN = 2.0
"""Pixels of a column in which steps are counted where they are narrower than that."""
_SHADES = 4


@dataclass(frozen=True, slots=True)
class Plot:
    """Where a panel stands in a drawing, and its scales."""

    drawing: Drawing
    x: Scale
    y: Scale

    def axes(self, most_y: int = 4, words: str = "") -> None:
        """Frame, grid and ticks of the upright axis; what is measured stands above."""
        x0, x1 = self.x.start, self.x.end
        for value in ticks(self.y.low, self.y.high, most_y):
            at = self.y(value)
            self.drawing.line(x0, at, x1, at, "gr")
            self.drawing.text(x0 - 6, at + 3.5, tick_text(value), "tk", "end")
        if words:
            self.drawing.text(x0, self.y.end - 7, shortened(words, x1 - x0, 11.5), "tt")

    def foot(self, words: str = "", most: int = 0) -> None:
        """Ticks of the level axis, below the panel."""
        bottom = self.y.start
        self.drawing.line(self.x.start, bottom, self.x.end, bottom, "ax")
        room = max(int((self.x.end - self.x.start) / 46), 2)
        whole = [v for v in ticks(self.x.low, self.x.high, most or min(room, 11)) if v == int(v)]
        for value in whole if words == "step" else ticks(self.x.low, self.x.high, most or room):
            at = self.x(value)
            self.drawing.line(at, bottom, at, bottom + 4, "ax")
            shown, edge = tick_text(value), self.drawing.width - 1
            if at + wide(shown) / 2 > edge:
                self.drawing.text(edge, bottom + 15, shown, "tk", "end")
            else:
                self.drawing.text(at, bottom + 15, shown, "tk", "middle")
        if words:
            self.drawing.text((self.x.start + self.x.end) / 2, bottom + 29, words, "tk", "middle")


def step_scale(accounts: Sequence[Account], left: float, right: float) -> Scale:
    """From step 0 to the last step of any of them."""
    last = max((account.beats[-1].step for account in accounts if account.beats), default=1)
    return Scale(0.0, max(last, 1) + 0.5, left, right)


def metric_figure(accounts: Sequence[Account], width: float) -> Drawing:
    """Each metric with its target, the steps in crisis shaded, and the reward.

    Args:
        accounts: One run, or two that are drawn over each other.
        width: Pixels.
    """
    names = list(dict.fromkeys(name for a in accounts for name in a.shown_metrics))
    panels = len(names) + 1
    height = _TOP + 22 + panels * (_PANEL + _GAP) - _GAP + 22 + _FOOT - 22
    drawing = Drawing(width, height, _metric_label(accounts, names))
    x = drawing.steps = step_scale(accounts, _LEFT, width - _RIGHT)
    top = _TOP + 22.0
    for name in names:
        _metric_panel(drawing, accounts, name, x, top)
        top += _PANEL + _GAP
    plot = _reward_panel(drawing, accounts, x, top)
    plot.foot("step")
    return drawing


def _metric_label(accounts: Sequence[Account], names: Sequence[str]) -> str:
    shown = ", ".join(" ".join(label(name)[:1]) for name in names)
    runs = " and ".join(account.run for account in accounts)
    return f"{shown} and reward of {runs} over the steps; the numbers stand in the table below"


def _metric_panel(
    drawing: Drawing, accounts: Sequence[Account], name: str, x: Scale, top: float
) -> None:
    title, unit = label(name)
    having = [place for place, account in enumerate(accounts) if name in account.metrics]
    lines = {place: _line_of(accounts[place], name) for place in having}
    bounds = {p: a.targets[name] for p, a in enumerate(accounts) if name in a.targets}
    known = [y for _, ys in lines.values() for y in ys if math.isfinite(y)]
    low, high = _range([*known, *bounds.values()])
    plot = Plot(drawing, x, Scale(low, high, top + _PANEL, top))
    _crises(drawing, accounts, x, top, _PANEL)
    plot.axes(words=f"{title}, {unit}" if unit else title)
    for bound in dict.fromkeys(bounds.values()):
        drawing.line(x.start, plot.y(bound), x.end, plot.y(bound), "tl")
    if bounds:
        drawing.text(x.end, top - 7, _target_text(bounds), "tg", "end")
    for place, (xs, ys) in lines.items():
        points = [(x(at), plot.y(value)) for at, value in zip(xs, ys, strict=True)]
        drawing.path(polyline(points), f"run r{place}")
        if len(xs) <= DOTS_UP_TO + 1 and place in bounds:
            pairs = list(zip(points, ys, strict=True))
            within = (p for p, value in pairs if value < bounds[place])
            drawing.path(specks(within), f"pt r{place}")
            drawing.path(specks(p for p, value in pairs if value >= bounds[place]), "pt out")
    drawing.line(x.start, top + _PANEL, x.end, top + _PANEL, "ax")


def _target_text(bounds: Mapping[int, float]) -> str:
    """The target, or that of A and that of B where they differ."""
    shown = {place: tick_text(bound) for place, bound in bounds.items()}
    if len(set(shown.values())) == 1:
        return f"target < {next(iter(shown.values()))}"
    return "target " + ", ".join(f"{'AB'[place]} < {text}" for place, text in shown.items())


def _line_of(account: Account, name: str) -> tuple[list[float], list[float]]:
    """Steps and values, what was observed first at step 0, thinned to what can be seen."""
    xs = [0.0, *(float(beat.step) for beat in account.beats)]
    ys = [account.opening.get(name, math.nan), *account.metrics[name]]
    return thinned(xs, ys, 700)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """A range that holds all values, from 0 where that costs little."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if low >= 0 and low < 0.55 * high:
        low = 0.0
    spread = high - low or abs(high) or 1.0
    return (low if low == 0 else low - 0.06 * spread), high + 0.08 * spread


def _crises(
    drawing: Drawing, accounts: Sequence[Account], x: Scale, top: float, height: float
) -> None:
    """Shade the steps in crisis; where two runs do not share them, each gets half the height."""
    bands = [[beat.step for beat in account.beats if beat.crisis] for account in accounts]
    if len(bands) > 1 and bands[0] == bands[1]:
        bands = bands[:1]
    part = height / max(len(bands), 1)
    for place, steps in enumerate(bands):
        for level, spans in _shades(steps, x).items():
            style = "cr" if level == _SHADES else f"cr o{level}"
            drawing.path(bars(spans, top + place * part, part), style)


def _shades(steps: Sequence[int], x: Scale) -> dict[int, list[tuple[float, float]]]:
    """Where steps lie, by how dense they are: `_SHADES` is every step of a column of pixels.

    Steps that are wider than a column are bands of full strength, neighbours joined. Narrower
    ones are counted per column: a mark for each of them would paint everything.
    """
    if x(1) - x(0) >= _COLUMN:
        return {_SHADES: list(_bands(steps, x))}
    counted: dict[int, int] = {}
    for step in steps:
        column = int((x(step) - x.start) / _COLUMN)
        counted[column] = counted.get(column, 0) + 1
    found: dict[int, list[tuple[float, float]]] = {}
    per_column = _COLUMN / (x(1) - x(0))
    for column, count in sorted(counted.items()):
        level = min(max(math.ceil(_SHADES * count / per_column - 0.5), 1), _SHADES)
        start = x.start + column * _COLUMN
        found.setdefault(level, []).append((start, min(start + _COLUMN, x.end)))
    return found


def _bands(steps: Sequence[int], x: Scale) -> Iterator[tuple[float, float]]:
    """Runs of neighbouring steps, from half a step before to half a step after."""
    first = last = None
    for step in steps:
        if last is not None and step == last + 1:
            last = step
            continue
        if first is not None and last is not None:
            yield max(x(first - 0.5), x.start), min(x(last + 0.5), x.end)
        first = last = step
    if first is not None and last is not None:
        yield max(x(first - 0.5), x.start), min(x(last + 0.5), x.end)


def _reward_panel(drawing: Drawing, accounts: Sequence[Account], x: Scale, top: float) -> Plot:
    rewards = [beat.reward for account in accounts for beat in account.beats]
    low, high = min([0.0, *rewards]), max([0.0, *rewards])
    spread = high - low or 1.0
    scale = Scale(low - 0.05 * spread, high + 0.08 * spread, top + _PANEL, top)
    plot = Plot(drawing, x, scale)
    _crises(drawing, accounts, x, top, _PANEL)
    plot.axes(words="reward of the step")
    zero = scale(0.0)
    drawing.line(x.start, zero, x.end, zero, "zero")
    if len(accounts) == 1 and len(rewards) <= 4 * DOTS_UP_TO:
        thick = max(min((x(1) - x(0)) * 0.62, 14.0), 1.0)
        for beat in accounts[0].beats:
            at, end = x(beat.step), scale(beat.reward)
            style = "gain" if beat.reward >= 0 else "loss"
            drawing.rect(at - thick / 2, min(zero, end), thick, max(abs(end - zero), 0.8), style)
        return plot
    for place, account in enumerate(accounts):
        steps = [float(beat.step) for beat in account.beats]
        xs, ys = thinned(steps, [beat.reward for beat in account.beats], 700)
        points = ((x(at), scale(value)) for at, value in zip(xs, ys, strict=True))
        drawing.path(polyline(points), f"run r{place}")
    return plot


def timeline_figure(account: Account, width: float, scale_to: Sequence[Account] = ()) -> Drawing:
    """What was done in each step: a lane for each kind of action, the most frequent on top."""
    counted: dict[str, int] = {}
    for beat in account.beats:
        for kind in kinds(beat.action):
            counted[kind] = counted.get(kind, 0) + 1
    order = sorted(counted, key=lambda kind: (-counted[kind], kind))
    lanes, rest = order[:_MOST_LANES], order[_MOST_LANES:]
    named = [*lanes, *([f"{len(rest)} other kinds"] if rest else [])]
    texts = [_lane_text(name, _count(name, counted, rest), 0.36 * width) for name in named]
    left = max([60.0, *(wide(text) + 12 for text in texts)])
    height = _TOP + 14 + len(named) * _LANE + _FOOT
    drawing = Drawing(width, height, f"actions of {account.run} over the steps, by kind")
    x = drawing.steps = step_scale(scale_to or (account,), left, width - _RIGHT)
    top = _TOP + 10.0
    bottom = top + len(named) * _LANE
    plot = Plot(drawing, x, Scale(0.0, 1.0, bottom, top))
    _crises(drawing, (account,), x, top, bottom - top)
    for place, text in enumerate(texts):
        middle = top + (place + 0.5) * _LANE
        drawing.line(x.start, middle, x.end, middle, "gr")
        drawing.text(left - 8, middle + 3.7, text, "tk", "end")
    places = {kind: place for place, kind in enumerate(lanes)}
    _ticks(drawing, account, x, top, places, len(lanes))
    plot.foot("step")
    return drawing


def _count(name: str, counted: dict[str, int], rest: Sequence[str]) -> str:
    return f"×{counted[name] if name in counted else sum(counted[kind] for kind in rest):,}"


def _lane_text(name: str, count: str, width_px: float) -> str:
    """Name and count; where both do not fit, the name is cut."""
    return f"{shortened(name, width_px - wide(count))} {count}"


def _ticks(
    drawing: Drawing, account: Account, x: Scale, top: float, places: dict[str, int], other: int
) -> None:
    """One mark per action; of steps that are too narrow, one per column, as dark as it is full."""
    done: dict[tuple[int, str], list[int]] = {}
    for beat in account.beats:
        style = "act over" if beat.overridden or beat.no_deal else "act"
        for place in dict.fromkeys(places.get(kind, other) for kind in kinds(beat.action)):
            done.setdefault((place, style), []).append(beat.step)
    size, step = _LANE * 0.62, x(1) - x(0)
    for (place, style), steps in sorted(done.items()):
        at = top + place * _LANE + (_LANE - size) / 2
        if step >= _COLUMN:
            half = min(step * 0.72, 13.0) / 2
            drawing.path(bars(((x(s) - half, x(s) + half) for s in steps), at, size), style)
            continue
        for level, spans in _shades(steps, x).items():
            shade = style if level == _SHADES else f"{style} o{level}"
            drawing.path(bars(spans, at, size), shade)

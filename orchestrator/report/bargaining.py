"""The negotiation as figures: what each seat got, what was on the table, and how seats gave way.

All values are V: a seat's utility of the projected consequence on its own range of the candidates
that could have been chosen, 0 its worst and 1 its best, so that seats can be drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from orchestrator.report.drawing import (
    Drawing,
    Scale,
    polyline,
    ribbon,
    shortened,
    specks,
    wide,
)
from orchestrator.report.figures import Plot, step_scale
from orchestrator.report.gather import Account, Scene
from orchestrator.report.wording import plan_words
from orchestrator.study.metrics.pareto import efficient
from orchestrator.study.metrics.points import kalai_smorodinsky_point, nash_point, welfare_point
from orchestrator.study.metrics.table import Laid

_LEFT, _RIGHT = 40.0, 12.0
_TOP = 24.0
_DASHES = 4
_MOST_PAIRS = 6
_MOST_CURVES = 6
_PALETTE = 8
_ONE_BY_ONE = 60
_SHARED_LABEL = 16.0


def hue(place: int) -> int:
    """Number of a seat's colour."""
    return place % _PALETTE


def utility_figure(account: Account, width: float) -> Drawing:
    """Per seat: V of the choice over the steps, before the spread of what was rejected."""
    scenes = [scene for scene in account.scenes.values() if scene.laid is not None and scene.even]
    scenes.sort(key=lambda scene: scene.record.step)
    columns = 2 if width > 620 else 1
    room = (width - (columns - 1) * 18) / columns
    tall = 128.0
    rows = math.ceil(len(account.seats) / columns)
    words = f"V of the chosen candidate per seat of {account.run}, over that of the rejected ones"
    drawing = Drawing(width, rows * (tall + 46), words)
    for place, seat in enumerate(account.seats):
        left = (place % columns) * (room + 18)
        top = (place // columns) * (tall + 46) + _TOP
        x = step_scale((account,), left + _LEFT, left + room - _RIGHT)
        plot = Plot(drawing, x, Scale(-0.04, 1.04, top + tall - 18, top))
        drawing.rect(left + _LEFT, top - 16, 9, 9, f"f{hue(place)}")
        drawing.text(left + _LEFT + 14, top - 7.5, shortened(seat, room - 120, 11.5), "tt")
        plot.axes(5)
        _utility_panel(plot, scenes, seat, place)
        plot.foot("step", 5 if columns == 2 else 0)
    return drawing


def _utility_panel(plot: Plot, scenes: Sequence[Scene], seat: str, place: int) -> None:
    xs: list[float] = []
    deciles: list[NDArray[np.float64]] = []
    rest: list[tuple[float, float]] = []
    chosen: list[tuple[float, float]] = []
    opposed: list[tuple[float, float]] = []
    for scene in scenes:
        laid = scene.laid
        if laid is None or seat not in laid.seats:
            continue
        values = laid.values[laid.seats.index(seat)]
        rejected = laid.admissible.copy()
        at = plot.x(scene.record.step)
        if laid.chosen is not None:
            rejected[laid.chosen] = False
            mark = at, plot.y(min(max(float(values[laid.chosen]), -0.04), 1.04))
            (chosen if laid.admissible[laid.chosen] else opposed).append(mark)
        if rejected.any():
            xs.append(at)
            deciles.append(np.quantile(values[rejected], (0.1, 0.25, 0.5, 0.75, 0.9)))
            rest += [(at, plot.y(float(value))) for value in values[rejected]]
    drawing = plot.drawing
    if len(scenes) <= _ONE_BY_ONE:
        drawing.path(specks(rest), "pt fine rest")
    elif xs:
        rows = [[plot.y(float(q[part])) for q in deciles] for part in range(5)]
        drawing.path(ribbon(xs, rows[0], rows[4]), "spread")
        drawing.path(ribbon(xs, rows[1], rows[3]), "middle")
        drawing.path(polyline(zip(xs, rows[2], strict=True)), "median")
    drawing.path(polyline(chosen), f"chosen s{hue(place)}")
    size = "pt" if len(scenes) <= _ONE_BY_ONE else "pt fine"
    drawing.path(specks(chosen), f"{size} s{hue(place)}")
    drawing.path(specks(opposed), "pt out")


def pareto_figure(scene: Scene, seats: Sequence[str], width: float, most: int = 6) -> Drawing:
    """The candidates of one decision, seat against seat, with the efficient ones and the front.

    Args:
        scene: The decision; some seats weighed it.
        seats: Seats in room order, for their colours.
        width: Pixels.
        most: Pairs to draw; of more, those that disagree most.
    """
    laid = scene.laid
    if laid is None or len(laid.seats) < 2:
        return Drawing(width, 0)
    pairs = _opposed_pairs(laid)[: min(most, _MOST_PAIRS)]
    columns = min(len(pairs), 3 if width > 620 else 2 if width > 330 else 1)
    gap = 16.0
    room = (width - (columns - 1) * gap) / columns
    side = min(room - _LEFT - _RIGHT, 260.0)
    tall = side + 66
    height = math.ceil(len(pairs) / columns) * tall
    words = f"candidates of step {scene.record.step}, V of one seat against V of another"
    drawing = Drawing(width, height, words)
    best = efficient(laid.utilities, laid.admissible)
    for place, pair in enumerate(pairs):
        left = (place % columns) * (room + gap) + _LEFT
        top = (place // columns) * tall + 18
        _pair_panel(drawing, laid, pair, best, (left, top, side), seats)
    return drawing


def _opposed_pairs(laid: Laid) -> list[tuple[int, int]]:
    """Pairs of seats, those first whose values agree least over the admissible candidates."""
    fine = laid.values[:, laid.admissible]

    def agreement(pair: tuple[int, int]) -> float:
        one, other = (fine[seat] - fine[seat].mean() for seat in pair)
        size = math.sqrt(float((one * one).sum()) * float((other * other).sum()))
        return round(float((one * other).sum()) / size, 9) if size > 0 else 1.0

    return sorted(combinations(range(len(laid.seats)), 2), key=lambda p: (agreement(p), p))


def _pair_panel(
    drawing: Drawing,
    laid: Laid,
    pair: tuple[int, int],
    best: NDArray[np.bool_],
    frame: tuple[float, float, float],
    seats: Sequence[str],
) -> None:
    left, top, side = frame
    x, y = Scale(-0.06, 1.06, left, left + side), Scale(-0.06, 1.06, top + side, top)
    plot = Plot(drawing, x, y)
    plot.axes(5)
    plot.foot(most=5)
    across, up = (laid.values[seat] for seat in pair)
    names = [laid.seats[seat] for seat in pair]
    drawing.text(left + side / 2, top + side + 30, shortened(f"V of {names[0]}", side), "tk",
                 "middle")  # fmt: skip
    drawing.text(left, top - 7, shortened(f"V of {names[1]} ↑", side), "tk")
    spots = [(x(_held(a)), y(_held(b))) for a, b in zip(across, up, strict=True)]
    drawing.path(_front(across, up, laid.admissible, x, y), "front")
    ruled_out = [spots[k] for k in np.flatnonzero(~laid.admissible)]
    beaten = [spots[k] for k in np.flatnonzero(laid.admissible & ~best)]
    drawing.path(_crosses(ruled_out), "cross")
    drawing.path(specks(beaten), "pt rest")
    drawing.path(specks(spots[k] for k in np.flatnonzero(best)), "pt best")
    labels: list[tuple[tuple[float, float], list[str]]] = []
    for name, place in _marked(laid):
        at = spots[place]
        drawing.dot(*at, 6.5, "halo", f"{name}: {plan_words(laid.names[place], 90)}")
        near = (names for spot, names in labels if math.dist(spot, at) < _SHARED_LABEL)
        together = next(near, None)
        if together is None:
            labels.append((at, [name]))
        else:
            together.append(name)
    for at, words in labels:
        shown = "·".join(words)
        if at[0] + 8 + wide(shown) > drawing.width:
            drawing.text(at[0] - 8, at[1] - 6, shown, "lb", "end")
        else:
            drawing.text(at[0] + 8, at[1] - 6, shown, "lb")
    if laid.chosen is not None:
        at = spots[laid.chosen]
        drawing.dot(*at, 5.2, "pick", f"chosen: {plan_words(laid.names[laid.chosen], 90)}")


def _held(value: float) -> float:
    """A value within the panel: what could not be chosen may lie outside 0–1."""
    return min(max(float(value), -0.05), 1.05)


def _marked(laid: Laid) -> list[tuple[str, int]]:
    """The bargaining solutions that are not the choice itself; those that coincide share a mark."""
    points: dict[int, list[str]] = {}
    fine = laid.admissible
    if laid.disagreement is not None:
        nash = nash_point(laid.utilities, laid.disagreement, laid.weights, fine)
        smorodinsky = kalai_smorodinsky_point(laid.utilities, laid.disagreement, laid.weights, fine)
        for name, place in (("N", nash), ("KS", smorodinsky)):
            if place is not None:
                points.setdefault(int(place), []).append(name)
    points.setdefault(welfare_point(laid.values, laid.weights, fine), []).append("W")
    return [("·".join(names), place) for place, names in points.items()]


def _front(
    across: NDArray[np.float64],
    up: NDArray[np.float64],
    fine: NDArray[np.bool_],
    x: Scale,
    y: Scale,
) -> str:
    """The stairs of what these two seats alone could not both improve on."""
    order = sorted(np.flatnonzero(fine).tolist(), key=lambda k: (-across[k], -up[k]))
    stairs: list[tuple[float, float]] = []
    highest = -math.inf
    for place in order:
        if up[place] <= highest:
            continue
        here = float(across[place]), float(up[place])
        if stairs:
            stairs.append((here[0], stairs[-1][1]))
        stairs.append(here)
        highest = here[1]
    return polyline((x(a), y(b)) for a, b in stairs)


def _crosses(spots: Sequence[tuple[float, float]]) -> str:
    return "".join(
        polyline([(a - 2.5, b - 2.5), (a + 2.5, b + 2.5)])
        + polyline([(a - 2.5, b + 2.5), (a + 2.5, b - 2.5)])
        for a, b in spots
    )


def strip_figure(scene: Scene, seats: Sequence[str], width: float) -> Drawing:
    """All candidates of one decision on each seat's own scale, the choice marked."""
    laid = scene.laid
    if laid is None:
        return Drawing(width, 0)
    left = max([60.0, *(wide(shortened(seat, 120)) + 14 for seat in laid.seats)])
    lane = 24.0
    height = len(laid.seats) * lane + 26
    words = f"V of every candidate of step {scene.record.step} for each seat, the choice marked"
    drawing = Drawing(width, height, words)
    x = Scale(-0.05, 1.05, left, width - 16)
    plot = Plot(drawing, x, Scale(0, 1, height - 22, 2))
    for place, seat in enumerate(laid.seats):
        middle = 2 + (place + 0.5) * lane
        drawing.line(x.start, middle, x.end, middle, "gr")
        drawing.text(left - 8, middle + 3.7, shortened(seat, 120), "tk", "end")
        spots = [(x(_held(value)), middle) for value in laid.values[place]]
        fine = [spots[k] for k in np.flatnonzero(laid.admissible) if k != laid.chosen]
        drawing.path(specks(fine), "pt rest")
        drawing.path(_crosses([spots[k] for k in np.flatnonzero(~laid.admissible)]), "cross")
        if laid.chosen is not None:
            colour = seats.index(seat) if seat in seats else place
            drawing.path(specks([spots[laid.chosen]]), f"pt big s{hue(colour)}")
    plot.foot(most=6)
    return drawing


def concession_figure(account: Account, width: float) -> Drawing | None:
    """V to each seat of what it asked for, by round, in the decisions with the most rounds."""
    asked = [scene for scene in account.scenes.values() if _bids(scene) > 1]
    asked.sort(key=lambda scene: (-_bids(scene), scene.record.step))
    shown = sorted(asked[:_MOST_CURVES], key=lambda scene: scene.record.step)
    if not shown:
        return None
    columns = min(len(shown), 3 if width > 620 else 1)
    gap, tall = 18.0, 150.0
    room = (width - (columns - 1) * gap) / columns
    legend = 22.0
    height = legend + math.ceil(len(shown) / columns) * (tall + 36)
    drawing = Drawing(width, height, f"how the seats of {account.run} gave way, round by round")
    seat_legend(drawing, account.seats, _LEFT, 12.0, width)
    for place, scene in enumerate(shown):
        left = (place % columns) * (room + gap) + _LEFT
        top = legend + (place // columns) * (tall + 36) + 22
        _curves(drawing, scene, account.seats, (left, top, room - _LEFT - _RIGHT, tall - 34))
    return drawing


def _bids(scene: Scene) -> int:
    return max((len(part.bids) for part in scene.row.concessions.values()), default=0)


def _curves(
    drawing: Drawing,
    scene: Scene,
    seats: Sequence[str],
    frame: tuple[float, float, float, float],
) -> None:
    left, top, across, tall = frame
    found = scene.row.concessions
    last = max(bid.round for part in found.values() for bid in part.bids)
    first = min(bid.round for part in found.values() for bid in part.bids)
    x = Scale(first - 0.3, max(last, first + 1) + 0.3, left, left + across)
    plot = Plot(drawing, x, Scale(-0.04, 1.06, top + tall, top))
    plot.axes(5)
    drawing.text(left, top - 7, f"step {scene.record.step}", "tt")
    plot.foot("round" if scene.record.step else "", min(last - first + 1, 6))
    for seat, part in found.items():
        place = seats.index(seat) if seat in seats else 0
        points = [(x(bid.round), plot.y(_held(bid.own))) for bid in part.bids]
        drawing.path(polyline(points), f"chosen s{hue(place)} d{place % _DASHES}")
        drawing.path(specks(points), f"pt s{hue(place)}")


def seat_legend(
    drawing: Drawing, seats: Sequence[str], left: float, baseline: float, width: float
) -> None:
    """Colours of the seats on one line, as many as fit."""
    at = left
    for place, seat in enumerate(seats):
        text = shortened(seat, 110)
        need = 16 + wide(text) + 12
        if at + need > width:
            break
        drawing.rect(at, baseline - 8.5, 9, 9, f"f{hue(place)}")
        drawing.text(at + 13, baseline, text, "tk")
        at += need


def influence_figure(
    seats: Sequence[str], groups: Sequence[tuple[str, Sequence[float | None]]], width: float
) -> Drawing:
    """Bars per seat, one panel per share.

    Args:
        seats: Seats in room order.
        groups: Title → share 0–1 per seat, None where it is not known.
        width: Pixels.
    """
    left = max([50.0, *(wide(shortened(seat, 130)) + 14 for seat in seats)])
    columns = len(groups) if width > 620 else 1
    gap, lane = 22.0, 22.0
    room = (width - left - (columns - 1) * gap) / columns - 4
    tall = 26 + len(seats) * lane + 10
    rows = math.ceil(len(groups) / columns)
    drawing = Drawing(width, rows * tall, "influence of each seat; the numbers stand in the table")
    for place, (title, shares) in enumerate(groups):
        column, row = place % columns, place // columns
        start = left + column * (room + gap)
        top = row * tall + 22
        x = Scale(0.0, 1.0, start, start + room - 40)
        drawing.text(start, top - 8, shortened(title, room, 11.5), "tt")
        for seat_place, (seat, value) in enumerate(zip(seats, shares, strict=True)):
            y = top + seat_place * lane
            if column == 0:
                drawing.text(left - 8, y + 14, shortened(seat, 130), "tk", "end")
            drawing.rect(start, y + 3, x.end - start, lane - 8, "track")
            if value is None:
                drawing.text(start + 4, y + 14, "not known", "tk")
                continue
            drawing.rect(start, y + 3, x(value) - start, lane - 8, f"f{hue(seat_place)}")
            drawing.text(x.end + 6, y + 14, f"{100 * value:.0f} %", "tk")
    return drawing


def spending_figure(rows: Sequence[tuple[str, float, float]], width: float) -> Drawing:
    """Tokens per seat, read and written, as stacked bars.

    Args:
        rows: Seat, tokens in, tokens out.
        width: Pixels.
    """
    left = max([50.0, *(wide(shortened(seat, 130)) + 14 for seat, _, _ in rows)])
    lane = 24.0
    drawing = Drawing(width, 22 + len(rows) * lane + 30, "tokens of each seat's model calls")
    most = max((read + written for _, read, written in rows), default=0.0) or 1.0
    x = Scale(0.0, most, left, width - 60)
    plot = Plot(drawing, x, Scale(0, 1, 20 + len(rows) * lane, 20))
    drawing.rect(left, 3, 9, 9, "f0")
    drawing.text(left + 13, 11.5, "tokens in", "tk")
    drawing.rect(left + 80, 3, 9, 9, "f4")
    drawing.text(left + 93, 11.5, "tokens out", "tk")
    for place, (seat, read, written) in enumerate(rows):
        top = 20 + place * lane
        drawing.text(left - 8, top + 15, shortened(seat, 130), "tk", "end")
        drawing.rect(left, top + 4, x(read) - left, lane - 9, "f0")
        drawing.rect(x(read), top + 4, x(read + written) - x(read), lane - 9, "f4")
        drawing.text(x(read + written) + 5, top + 15, f"{read + written:,.0f}", "tk")
    plot.foot(most=5)
    return drawing

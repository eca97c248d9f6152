"""A report as one sheet of figures: an SVG on its own, and a PNG of it without a browser."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.bargaining import (
    concession_figure,
    influence_figure,
    pareto_figure,
    seat_legend,
    spending_figure,
    utility_figure,
)
from orchestrator.report.drawing import Drawing, shortened
from orchestrator.report.figures import metric_figure, timeline_figure
from orchestrator.report.gather import Account
from orchestrator.report.influence import favourites, influence_shares, pivotality
from orchestrator.report.palette import sheet_css
from orchestrator.report.wording import counted, plan_words
from orchestrator.report.wording import figure as number
from orchestrator.trace.untrusted import printable
from world.errors import MissingExtraError

WIDTH = 1040.0
_MARGIN = 28.0
PNG_SCALE = 2.0
"""Pixels of a PNG per pixel of its sheet: sharp in print at half a page's width."""


def sheet(accounts: Sequence[Account]) -> str:
    """The figures of one run, or of two, below each other, as an SVG document."""
    parts = list(_parts(accounts))
    legend = 46.0 if len(accounts) > 1 else 26.0
    height = _MARGIN + 46 + legend + sum(38 + d.height + 16 for _, d in parts) + _MARGIN
    words = "Report of " + " and ".join(account.run for account in accounts)
    page = Drawing(WIDTH + 2 * _MARGIN, height, words)
    top = _head(page, accounts)
    for title, drawing in parts:
        page.text(_MARGIN, top + 14, shortened(title, WIDTH, 13), "sub")
        page.place(drawing, _MARGIN, top + 30)
        top += 38 + drawing.height + 16
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + page.svg(sheet_css()) + "\n"


def _head(page: Drawing, accounts: Sequence[Account]) -> float:
    first = accounts[0]
    said = first.header.scenario.get("name", ""), first.header.data.get("seed", "")
    page.text(_MARGIN, _MARGIN + 14, shortened(f"{said[0]}, seed {said[1]}", WIDTH, 17), "hd")
    top = _MARGIN + 34
    for place, account in enumerate(accounts):
        mark = ""
        if len(accounts) > 1:
            page.line(_MARGIN, top - 4, _MARGIN + 18, top - 4, f"run r{place}")
            mark = "AB"[place] + "  "
        left = _MARGIN + (26 if mark else 0)
        page.text(left, top, shortened(mark + _in_short(account), WIDTH - 26), "tk")
        top += 18
    seat_legend(page, first.seats, _MARGIN, top + 4, WIDTH)
    return top + 22


def _in_short(account: Account) -> str:
    score = "" if account.score is None else f", score {account.score:.3f}"
    verdict = account.scorecard.get("success")
    said = "" if verdict is None else ", success" if verdict is True else ", no success"
    unfinished = "" if account.ending.complete else ", not finished"
    return (
        f"{printable(account.run)}: protocol {printable(account.header.protocol)},"
        f" {counted(len(account.beats), 'step')}, reward {number(account.reward_total)}"
        f"{score}{said}{unfinished}"
    )


def _parts(accounts: Sequence[Account]) -> list[tuple[str, Drawing]]:
    if not any(account.beats for account in accounts):
        return []
    parts = [("Metrics against targets; shaded: in crisis", metric_figure(accounts, WIDTH))]
    for place, account in enumerate(accounts):
        name = f"{'AB'[place]}: " if len(accounts) > 1 else ""
        if account.beats:
            drawing = timeline_figure(account, WIDTH, accounts)
            parts.append((f"{name}What was decided", drawing))
    for place, account in enumerate(accounts):
        name = f"{'AB'[place]}: " if len(accounts) > 1 else ""
        parts += [(name + title, drawing) for title, drawing in _of_one(account)]
    return parts


def _of_one(account: Account) -> list[tuple[str, Drawing]]:
    parts: list[tuple[str, Drawing]] = []
    if any(scene.laid is not None for scene in account.scenes.values()):
        title = "V of the chosen option to each seat, before the rejected ones (grey)"
        parts.append((title, utility_figure(account, WIDTH)))
    scene = account.featured()
    if scene is not None:
        chosen = plan_words(scene.record.chosen, 80)
        title = (
            f"Options of step {scene.record.step}, the most contested; black: efficient, stairs:"
            f" front of the two; orange: {chosen}"
        )
        parts.append((title, pareto_figure(scene, account.seats, WIDTH)))
    curves = concession_figure(account, WIDTH)
    if curves is not None:
        parts.append(("V of what each seat asked for, round by round", curves))
    if account.seats and account.summary.decisions:
        shares = influence_shares(account, favourites(account), pivotality(account))
        parts.append(("Influence", influence_figure(account.seats, shares, WIDTH)))
    used = {seat: tally.cost for seat, tally in account.summary.seats.items() if tally.cost.calls}
    if used:
        rows = [(seat, float(c.tokens_in), float(c.tokens_out)) for seat, c in used.items()]
        parts.append(("Tokens of model calls", spending_figure(rows, WIDTH)))
    return parts


def png(svg: str) -> bytes:
    """A drawing as PNG, rendered by resvg, which brings its own typeface.

    Raises:
        MissingExtraError: The extra is not installed.
    """
    try:
        import vl_convert
    except ModuleNotFoundError:
        raise MissingExtraError(
            "--png needs vl-convert-python, which is not installed",
            "it is in the extra 'ui'; a page and an SVG need nothing",
            "Install it: pip install '.[ui]'; or take --svg",
        ) from None
    found: bytes = vl_convert.svg_to_png(svg, scale=PNG_SCALE)
    return found

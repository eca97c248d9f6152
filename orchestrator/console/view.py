"""What the live view shows, as plain data and as a picture: state in, renderable out.

Nothing here knows a terminal's size or colours ahead of time, and nothing here prints. Text from
personas and worlds enters only as `rich.text.Text` made of `plain` words, so that neither markup
nor control characters in it are obeyed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from orchestrator.console.action_words import action_words
from orchestrator.console.metric_names import beside, in_target, label
from orchestrator.console.text import plain
from orchestrator.console.watcher import model_of
from orchestrator.trace.ids import decoded_in

_BAR_CELLS = 28
_RECENT_STEPS = 6


@dataclass
class ViewState:
    """What a viewer has been told so far.

    Attributes:
        title: Scenario, seed and protocol.
        run: Run id.
        store: Which store keeps it.
        model: What voices the seats.
        step: Steps committed.
        horizon: Steps in the episode.
        metrics: Metric → value; None is unknown.
        targets: Metric → strict upper bound.
        highest: Metric → highest value seen, which scales its bar.
        proposals: Seat → (action id, rationale).
        decision: Data of the last decision.
        recent: The last steps: (step, action, reward, success, error).
        reward_total: Sum of the rewards seen.
        crisis: Whether a crisis is announced now.
        notes: What happened by itself, and what is visibly wrong.
        ended: Whether the episode is over.
    """

    title: str = ""
    run: str = ""
    store: str = ""
    model: str = ""
    step: int = 0
    horizon: int = 0
    metrics: dict[str, float | None] = field(default_factory=dict)
    targets: dict[str, float] = field(default_factory=dict)
    highest: dict[str, float] = field(default_factory=dict)
    proposals: dict[str, tuple[str, str]] = field(default_factory=dict)
    decision: Mapping[str, Any] = field(default_factory=dict)
    recent: deque[tuple[int, str, float, bool, str]] = field(
        default_factory=lambda: deque(maxlen=_RECENT_STEPS)
    )
    reward_total: float = 0.0
    crisis: bool = False
    notes: tuple[str, ...] = ()
    ended: bool = False

    def start(self, run: str, header: Mapping[str, Any]) -> None:
        """Take what `Observer.started` was told."""
        scenario = header.get("scenario", {})
        protocol = header.get("protocol", {})
        self.title = plain(
            f"{scenario.get('name', '')} · seed {header.get('seed', '')} · "
            f"{protocol.get('name', '') if isinstance(protocol, Mapping) else protocol}"
        )
        self.run, self.store = plain(run), plain(header.get("store", ""))
        self.model = plain(model_of(header))
        self.step = int(header.get("resumed_at", 0))
        self.horizon = int(header.get("horizon", 0))
        self.targets = dict(scenario.get("targets", {}))

    def observe(self, data: Mapping[str, Any]) -> None:
        """Take an observation: the next decision begins; the seats keep their rows."""
        self._measure(data.get("metrics", {}), data.get("targets", {}))
        self.crisis = bool(data.get("facts", {}).get("crisis", False))
        self.notes = tuple(plain(line) for line in data.get("incidents", ()))
        self.proposals, self.decision = dict.fromkeys(self.proposals, ("…", "")), {}

    def propose(self, data: Mapping[str, Any]) -> None:
        """Take each seat's first proposal."""
        self.proposals = {
            plain(seat): (str(top.get("id", "")), plain(top.get("rationale", "")))
            for seat, top in data.items()
        }

    def decide(self, data: Mapping[str, Any]) -> None:
        """Take the decision."""
        self.decision = dict(data)

    def commit(self, step: int, record: Mapping[str, Any]) -> None:
        """Take a committed step."""
        self.step, self.horizon = step, int(record.get("horizon", self.horizon))
        self._measure(record.get("metrics", {}), record.get("targets", {}))
        self.propose(record.get("proposals", {}))
        self.decide(record.get("decision", {}))
        self.notes = tuple(plain(line) for line in record.get("events", ()))
        reward = float(record["reward"])
        self.reward_total += reward
        error = record.get("error")
        self.recent.append(
            (
                step,
                str(record["action"]),
                reward,
                bool(record.get("success")),
                "" if error is None else plain(error),
            )
        )

    def _measure(self, metrics: Mapping[str, float | None], targets: Mapping[str, float]) -> None:
        self.metrics.update(metrics)
        self.targets.update(targets)
        for name, value in metrics.items():
            if value is not None:
                self.highest[name] = max(value, self.highest.get(name, value))


def bar(value: float, target: float, highest: float, cells: int = _BAR_CELLS) -> Text:
    """A bar of `value` with a mark at `target`, scaled so that both fit."""
    scale = max(target * 1.25, highest, value)
    filled = round(cells * max(value, 0.0) / scale) if scale > 0 else 0
    mark = min(cells - 1, round(cells * max(target, 0.0) / scale)) if scale > 0 else 0
    style = "green" if value < target else "red"
    picture = Text()
    for cell in range(cells):
        if cell == mark:
            picture.append("┃", style="bold")
        else:
            picture.append("█" if cell < filled else "·", style=style if cell < filled else "dim")
    return picture


def render(state: ViewState, width: int = 100) -> RenderableType:
    """The whole picture.

    Args:
        state: What to show.
        width: Columns that there are.
    """
    border = "bold red" if state.crisis else "cyan"
    parts: list[RenderableType] = [_progress(state, width), _metrics(state, width), Text()]
    parts += [_proposals(state, width), _decision(state, width)]
    if state.recent:
        parts += [Text(), _recent(state, width)]
    heading = Text("Cloud War Room", style="bold")
    heading.append(f"  {state.title}", style="not bold")
    return Panel(
        Group(*parts),
        title=heading,
        title_align="left",
        subtitle=Text(plain(f"run {state.run}", width - 8), style="dim"),
        subtitle_align="left",
        border_style=border,
        width=width,
    )


def _progress(state: ViewState, width: int) -> RenderableType:
    cells = 20
    done = round(cells * state.step / state.horizon) if state.horizon else 0
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append("━" * done, style="cyan")
    line.append("┄" * (cells - done), style="dim")
    line.append(f" step {state.step}/{state.horizon}")
    line.append(f"   reward {state.reward_total:+.1f}")
    if state.crisis:
        line.append("   ")
        line.append(" ⚠ CRISIS ", style="bold white on red")
    elif state.store:
        line.append(f"   {state.store}", style="dim")
    lines: list[RenderableType] = [line]
    if state.notes:
        lines.append(Text(plain(" · ".join(state.notes), width - 4), style="yellow"))
    return Group(*lines, Text())


def _metrics(state: ViewState, width: int) -> Table:
    table = Table.grid(padding=(0, 1))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    cells = min(_BAR_CELLS, max(6, width - 52))
    for name, value in state.metrics.items():
        target = state.targets.get(name)
        if target is None:
            continue
        title, unit = label(plain(name, 40))
        mark = _mark(in_target(value, target))
        shown, bound = ("—", f"{target:,g}") if value is None else beside(value, target)
        picture = Text("?" * 3) if value is None else bar(value, target, state.highest[name], cells)
        table.add_row(Text(title), picture, mark, Text(shown), Text(f"/ {bound} {unit}", "dim"))
    return table


def _mark(inside: bool | None) -> Text:
    if inside is None:
        return Text("? unknown", "yellow")
    return Text("✓ in", "green") if inside else Text("✗ out", "bold red")


def _proposals(state: ViewState, width: int) -> RenderableType:
    chosen = set(str(state.decision.get("action", "")).split("+")) - {""}
    table = Table.grid(padding=(0, 1), expand=False)
    seats = [plain(seat, 20) for seat in state.proposals]
    seat_cells = max([len(seat) for seat in seats] or [0])
    widest = max(18, (width - seat_cells) // 3)
    shown = [action_words(action or "nothing", widest) for action, _ in state.proposals.values()]
    action_cells = max([len(words) for words in shown] or [0])
    for column in (2, seat_cells, action_cells):
        table.add_column(width=column, no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    room = max(12, width - seat_cells - action_cells - 10)
    rows = zip(seats, shown, state.proposals.values(), strict=True)
    for seat, words, (action, rationale) in rows:
        wins = bool(action) and set(action.split("+")) <= chosen
        table.add_row(
            Text("▶" if wins else "", style="green"),
            Text(seat, style="bold"),
            Text(words, style="green" if wins else ""),
            Text(plain(rationale, room), style="dim"),
        )
    return table


def _decision(state: ViewState, width: int) -> RenderableType:
    if not state.decision:
        return Text("deciding …", style="dim")
    line = Text()
    line.append("→ ", style="bold")
    line.append(action_words(str(state.decision.get("action", "")), width), style="bold green")
    scored = state.decision.get("scores", {})
    ids = [str(state.decision.get("action", "")), *(scored if isinstance(scored, Mapping) else ())]
    line.append(f"  {plain(decoded_in(str(state.decision.get('reason', '')), ids))}")
    for key, words in (("overridden_from", "instead of"), ("no_deal", "no deal, decided by")):
        if state.decision.get(key):
            line.append(f"  {words} {action_words(str(state.decision[key]), 60)}", style="yellow")
    line.truncate(2 * (width - 4), overflow="ellipsis")
    return line


def _recent(state: ViewState, width: int) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for step, action, reward, success, error in state.recent:
        table.add_row(
            Text(f"{step}", "dim"),
            Text(action_words(action, width // 2)),
            Text(f"{reward:+.2f}"),
            Text(plain(error, 40), "red")
            if error
            else Text("all in target" if success else "", "green"),
        )
    return table

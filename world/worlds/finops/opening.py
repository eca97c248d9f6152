"""From a scenario to a state at step 0: settings, frame, targets and tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world.errors import ScenarioError
from world.model import Inventory, Scenario, significant
from world.worlds.finops import rules
from world.worlds.finops.bill import from_resources
from world.worlds.finops.estate import Edges, Frame, State, open_state
from world.worlds.finops.generate import generate, layout_of
from world.worlds.finops.schema import validate_resources
from world.worlds.finops.sizes import FIT_CEILING_PERCENT

TASKS = ("zombie_cleanup", "right_sizing", "production_stability", "bill")
"""What a scenario may ask for. The first three generate an inventory, ``bill`` gives it."""

DEFAULT_TARGET_FRACTION = 0.8
COST = "cost_usd_per_hour"
UNACCOUNTED = "unaccounted_usd_per_hour"
SATURATION = "saturation_percent"
CARBON = "carbon_kg_per_day"
REPEAT = "repeat_fraction"
METRICS = (COST, UNACCOUNTED, SATURATION, CARBON, REPEAT)

_KNOWN_PARAMS = frozenset(
    {"task", "layout", "coins", "use_known_fraction", "essential_known_fraction"}
    | {"target_fraction"}
)
_MG_PER_KG = 1e6


def check_scenario(scenario: Scenario) -> None:
    """Check everything that `open_world` reads.

    Raises:
        ScenarioError: Params, targets or rows contradict themselves.
    """
    task = scenario.params.get("task")
    if task not in TASKS:
        raise ScenarioError(
            f"scenario {scenario.name!r}: params.task is {task!r}",
            "the finops world has no such task",
            f"Write one of: {', '.join(TASKS)}",
        )
    target_fraction(scenario)
    ceiling = scenario.targets.get(SATURATION, FIT_CEILING_PERCENT)
    if not 0.0 < ceiling <= 100.0:
        raise ScenarioError(
            f"scenario {scenario.name!r}: targets.{SATURATION} is {ceiling:g}",
            "it must lie above 0 and at most at 100",
            "Correct that number",
        )
    for field in ("targets", "tolerances"):
        unknown = sorted(set(getattr(scenario, field)) - set(METRICS))
        if unknown:
            raise ScenarioError(
                f"scenario {scenario.name!r}: {field} name {unknown[0]!r}",
                "this world has no such metric",
                f"Metrics: {', '.join(METRICS)}",
            )
    if is_bill(scenario):
        validate_resources(scenario)
        return
    extra = sorted(set(scenario.params) - _KNOWN_PARAMS)
    if extra:
        raise ScenarioError(
            f"scenario {scenario.name!r}: params name {extra[0]!r}",
            "a generated inventory has no such parameter",
            f"Parameters: {', '.join(sorted(_KNOWN_PARAMS))}",
        )
    layout_of(scenario)


def is_bill(scenario: Scenario) -> bool:
    """Whether the rows are given; otherwise they are generated."""
    return scenario.params.get("task") == "bill" or bool(scenario.resources)


def target_fraction(scenario: Scenario) -> float:
    """The cost target as a fraction of the starting cost.

    Raises:
        ScenarioError: It is not between 0 and 1.
    """
    value = scenario.params.get("target_fraction", DEFAULT_TARGET_FRACTION)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value <= 1.0:
        raise ScenarioError(
            f"scenario {scenario.name!r}: params.target_fraction is {value!r}",
            "it must lie above 0 and at most at 1",
            "Correct that number",
        )
    return float(value)


def open_world(scenario: Scenario, seeds: Sequence[int]) -> State:
    """The state at step 0, one world per seed; a given inventory is the same for every seed."""
    if not is_bill(scenario):
        made = generate(scenario, seeds)
        columns, ids = made.columns, made.ids
        edges = made.edges
    else:
        made = from_resources(scenario)
        count, rows = len(seeds), len(made.ids[0])
        columns = {
            name: np.broadcast_to(column, (count, rows)) for name, column in made.columns.items()
        }
        ids = made.ids * count
        edges = _repeated(made.edges, count)
    frame = open_frame(scenario, ids, columns, made.vocabulary, edges)
    state = open_state(frame, columns)
    frame.start_carbon_mg = state.carbon_mg
    return state


def _repeated(edges: Edges, count: int) -> Edges:
    if count == 1:
        return edges
    return Edges(
        world=np.repeat(np.arange(count, dtype=np.int32), len(edges.needed)),
        needed=np.tile(edges.needed, count),
        dependant=np.tile(edges.dependant, count),
    )


def open_frame(
    scenario: Scenario,
    ids: list[tuple[str, ...]],
    columns: Mapping[str, NDArray[Any]],
    vocabulary: Mapping[str, tuple[str, ...]],
    edges: Edges,
) -> Frame:
    """The frame of a batch: what it cost at the start and where the targets lie."""
    frame = Frame(
        scenario,
        ids,
        vocabulary,
        edges,
        answers=not is_bill(scenario),
        ceiling_percent=float(scenario.targets.get(SATURATION, FIT_CEILING_PERCENT)),
    )
    start = rules.nano(columns["start_usd_per_hour"])
    frame.start_nano = start.sum(axis=1)
    frame.gross_nano = np.maximum(start, 0).sum(axis=1)
    if COST in scenario.targets:
        target = round(scenario.targets[COST] * rules.NANO)
        frame.target_nano = np.full(len(ids), target, dtype=np.int64)
    else:
        # A fraction of what can be saved on: credits stay whatever is done.
        cut = np.rint(frame.gross_nano * (1.0 - target_fraction(scenario))).astype(np.int64)
        frame.target_nano = frame.start_nano - cut
    return frame


def frame_of_view(scenario: Scenario, inventory: Inventory) -> Frame:
    """The frame behind a plain inventory view, rebuilt from what is visible."""
    needed: list[int] = []
    dependant: list[int] = []
    words, codes = inventory.vocabulary["dependants"], inventory.columns["dependants"]
    index = inventory.index
    for row in np.flatnonzero(codes).tolist():
        for name in words[int(codes[row])].split():
            if name in index:
                needed.append(row)
                dependant.append(index[name])
    edges = Edges(
        world=np.zeros(len(needed), dtype=np.int32),
        needed=np.array(needed, dtype=np.int32),
        dependant=np.array(dependant, dtype=np.int32),
    )
    columns = {name: column[None, :] for name, column in inventory.columns.items()}
    return open_frame(scenario, [tuple(inventory.ids)], columns, inventory.vocabulary, edges)


def targets_of(frame: Frame, world: int) -> dict[str, float]:
    """Strict upper bounds of one world: the scenario's, and the computed cost target."""
    return {
        COST: significant(frame.target_nano[world] / rules.NANO),
        SATURATION: frame.ceiling_percent,
        **{name: value for name, value in frame.scenario.targets.items() if name != COST},
    }


def tolerances_of(frame: Frame, world: int) -> dict[str, list[float]]:
    """Metric → [margin, scale] of one world, where the scenario does not say.

    The cost margin is the whole target: a careful seat never stops saving at the target. One unit
    of gap is a tenth of the starting cost (for carbon: of the start's own value).
    """
    target = max(float(frame.target_nano[world]) / rules.NANO, 0.0)
    gross = float(frame.gross_nano[world]) / rules.NANO
    carbon = float(frame.start_carbon_mg[world]) / _MG_PER_KG
    computed = {
        COST: [target, gross / 10.0 or 1.0],
        UNACCOUNTED: [0.0, gross / 10.0 or 1.0],
        SATURATION: [5.0, 10.0],
        CARBON: [0.0, carbon / 10.0 or 1.0],
        REPEAT: [0.0, 1.0],
    }
    given = {name: list(pair) for name, pair in frame.scenario.tolerances.items()}
    return {name: [significant(part) for part in pair] for name, pair in (computed | given).items()}

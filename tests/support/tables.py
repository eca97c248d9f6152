"""Hand-made negotiation tables: contexts from plain numbers, and a world with named targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.records import (
    Ballot,
    Candidate,
    Context,
    Decision,
    Deliberation,
    Proposal,
    Reply,
    Veto,
)
from tests.support.stub_world import StubState, StubWorld, stub_scenario
from world.actions import Action, ActionTemplate
from world.catalogue import Catalogue
from world.model import (
    Belief,
    Continuation,
    History,
    Joint,
    Key,
    Limits,
    MetricSpec,
    Observation,
    Plan,
    Scenario,
)

SCENARIO = stub_scenario()


def observation(
    metrics: Mapping[str, float | None] | None = None,
    facts: Mapping[str, Any] | None = None,
    step: int = 0,
) -> Observation:
    """An observation of the stub scenario, or of any other metrics and facts."""
    values = metrics or {"latency_ms": 250.0, "cost_usd_per_hour": 500.0}
    return Observation(step, 30, values, SCENARIO.targets, facts or {})


def history_of(now: Observation, decided: Sequence[Joint] = ()) -> History:
    """A history whose latest observation is `now`."""
    history = History(SCENARIO)
    history.observations.extend([now] * (len(decided) + 1))
    history.decisions.extend(decided)
    return history


def context(
    utilities: Sequence[Sequence[float]],
    *,
    ids: Sequence[str] = (),
    weights: Sequence[float] = (),
    disagreement: Sequence[float] = (),
    vetoes: Mapping[int, Mapping[str, str]] | None = None,
    infeasible: Sequence[str] = (),
    abstaining: Sequence[int] = (),
    no_deal: str = "weighted_score",
    candidates: Sequence[Candidate] = (),
    proposals: Mapping[str, tuple[Proposal, ...]] | None = None,
    history: History | None = None,
    seats: Sequence[str] = (),
) -> Context:
    """A context from a table of utilities, rows are seats and columns candidates.

    Args:
        utilities: Rows are seats.
        ids: Candidate ids; default a, b, c ….
        weights: Per seat; default 1.
        disagreement: Per seat; default 0.
        vetoes: Seat row → candidate id → reason.
        infeasible: Ids that guardrails refused.
        abstaining: Rows of seats that abstain.
        no_deal: The room's no-deal rule.
        candidates: Candidates to use instead of `ids`.
        proposals: Seat → proposals.
        history: History to use.
        seats: Seat names; default s0, s1 ….
    """
    table = np.array(utilities, dtype=np.float64).reshape(len(utilities), -1)
    names = list(ids) or [chr(ord("a") + column) for column in range(table.shape[1])]
    options = tuple(candidates) or tuple(
        Candidate(
            (Action(name),),
            origin=("s0#1",),
            feasible=name not in infeasible,
            reasons=("guard/validator: no",) if name in infeasible else (),
        )
        for name in names
    )
    who = tuple(seats) or tuple(f"s{row}" for row in range(len(table)))
    power = list(weights) or [1.0] * len(who)
    against = {
        row: {name: Veto(f"{who[row]}/red_line/1", why) for name, why in lines.items()}
        for row, lines in (vetoes or {}).items()
    }
    out = {name for lines in against.values() for name in lines}
    now = history or history_of(observation())
    return Context(
        seats=who,
        weights=np.array(power),
        candidates=options,
        utilities=table,
        admissible=np.array([c.feasible and c.id not in out for c in options], dtype=np.bool_),
        disagreement=np.array(list(disagreement) or [0.0] * len(who)),
        ballots=tuple(
            Ballot(
                name, table[row], power[row], against.get(row, {}), abstains=row in set(abstaining)
            )
            for row, name in enumerate(who)
        ),
        proposals=proposals or {},
        observation=now.now,
        history=now,
        no_deal=no_deal,
        seed=1,
        step=now.now.step,
    )


def settle(deliberation: Deliberation) -> Decision:
    """Run a protocol that asks nobody to its decision."""
    try:
        asks = next(deliberation)
    except StopIteration as done:
        decision: Decision = done.value
        return decision
    raise AssertionError(f"the protocol asked {asks}")


def drive(
    deliberation: Deliberation, answers: Sequence[Mapping[str, Reply]]
) -> tuple[Decision, list[tuple[Any, ...]]]:
    """Run a protocol by hand: one mapping of replies per batch of asks."""
    asked: list[tuple[Any, ...]] = []
    replies = iter(answers)
    try:
        asks = next(deliberation)
        while True:
            asked.append(asks)
            asks = deliberation.send(next(replies))
    except StopIteration as done:
        return done.value, asked


class FleetWorld(StubWorld):
    """A world of named machines: ``stop`` and ``shrink`` each of them, up to three at once.

    ``m0`` carries ``m1`` (whoever touches m0 touches m1); stopping ``m9`` is a hazard; ``m8``
    is unknown to the validator. Each stop takes 10 $/h off and adds 1 ms times the machine's
    number; each shrink half of that.
    """

    name = "fleet"
    limits = Limits(max_actions_per_step=3, has_nop=True, plan_depth=1, noise="none")
    templates = (
        ActionTemplate("nop", "Do nothing"),
        ActionTemplate("stop", "Stop a machine", targeted=True, destructive=True),
        ActionTemplate("shrink", "Shrink a machine", targeted=True),
    )
    metrics = (
        MetricSpec("latency_ms", "ms", "latency", "Latency"),
        MetricSpec("cost_usd_per_hour", "$/h", "cost", "Cost"),
    )

    def __init__(self, machines: int = 6) -> None:
        self.machines = machines

    def catalogue(self, observation: Observation) -> Catalogue:
        """Nop, then every stop, then every shrink."""
        del observation
        return Catalogue(
            [
                ("nop", 1, lambda _: Action("nop")),
                ("stop", self.machines, lambda i: Action("stop", f"m{i}")),
                ("shrink", self.machines, lambda i: Action("shrink", f"m{i}")),
            ]
        )

    def check(self, observation: Observation, action: Action) -> str | None:
        """Refuses unknown kinds and machines."""
        del observation
        if action.kind not in {"nop", "stop", "shrink"}:
            return f"there is no action {action.kind!r}"
        if action.kind != "nop" and (not action.target.startswith("m") or action.target == "m8"):
            return f"there is no machine {action.target!r}"
        return None

    def touched(self, observation: Observation, action: Action) -> frozenset[str]:
        """The machine, and m1 with m0."""
        del observation
        extra = ("m1",) if action.target == "m0" else ()
        return frozenset((action.target, *extra)) if action.target else frozenset()

    def hazards(self, observation: Observation, action: Action) -> tuple[str, ...]:
        """Stopping m9 does harm."""
        del observation
        return ("m9 holds the only copy",) if action == Action("stop", "m9") else ()

    def project(
        self,
        belief: Belief[StubState],
        plans: Sequence[Plan],
        horizon: int,
        continuation: Continuation | None,
        key: Key,
    ) -> NDArray[np.float64]:
        """Exact consequences of the first step, held for the whole horizon."""
        del continuation, key
        state = belief.states
        projected = np.empty((1, len(plans), belief.samples, horizon, 2))
        for row, plan in enumerate(plans):
            latency, cost = 0.0, 0.0
            for action in plan[0]:
                size = {"stop": 1.0, "shrink": 0.5}.get(action.kind, 0.0)
                latency += size * float(action.target[1:] or 0)
                cost -= 10.0 * size
            projected[0, row, :, :, 0] = state.latency_ms[0] + latency
            projected[0, row, :, :, 1] = state.cost_usd_per_hour[0] + cost
        return projected


def scenario_with(**changes: Any) -> Scenario:
    """The stub scenario with some fields replaced."""
    fields = {
        "name": SCENARIO.name,
        "world": SCENARIO.world,
        "title": SCENARIO.title,
        "description": SCENARIO.description,
        "horizon": SCENARIO.horizon,
        "targets": SCENARIO.targets,
        "tolerances": SCENARIO.tolerances,
    }
    return Scenario(**{**fields, **changes})

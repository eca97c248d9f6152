"""Published baselines of the cloud world: what fixed policies reach, and that it can be won.

Every policy plays the same raw seeds, none picked. A selfish policy plans well for one objective;
round-robin lets the selfish ones take turns; the constant ones repeat one kind of action. That
none of them wins shows that the conflict is real; that the certificates do shows that it is not
hopeless; the blind planner, which sees no more than a room, is the room's yardstick; the default
room itself stands beside it.

Every episode is kept in a file of JSON lines as soon as it is played, so that a measurement that
is stopped goes on where it stopped, and the table always shows all that was measured. Rows are
bound to the scenario's digest; remove the file after a change of the world or of the planners.

Run: python -m orchestrator.study.baselines, or make baselines
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.room import Room, build_room
from orchestrator.spec import EpisodeSpec
from orchestrator.study.certify import certify, cloud_world, demand_slope, prove, stratum_of
from orchestrator.study.intervals import estimate
from policies.guardrails import Bounds, Gate
from policies.planners.greedy import greedy
from policies.planners.lookahead import Sight, lookahead
from policies.records import Ask, Decision, Reply, Request
from policies.table import lay_table
from world.actions import NOP
from world.graders.registry import grade
from world.graders.scorecard import GradedStep
from world.model import History, Joint, Key, Scenario
from world.noise import channel, uniforms
from world.scenarios.baselines import BASELINES_FILE
from world.scenarios.certificates import (
    LEAST_HELD,
    certificate_of,
    certificates_path,
    held_fraction,
    read_certificates,
)
from world.scenarios.loader import load_scenario
from world.worlds.cloud.world import CloudWorld

Policy = Callable[[CloudWorld, History, Key], Joint]

OBJECTIVES = ("latency", "cost", "carbon", "waste")
CONSTANT = ("scale_up", "scale_down", "resize", "optimize_energy", "migrate_region", "terminate",
            "buy_reserved")  # fmt: skip
CERTIFICATE = "certificate"
_SELFISH = Sight(steps=6, singles=320)
_HEAD = "n | won | success | harm | held | score"
_RANDOM = channel("baseline.random")
_TURN = channel("baseline.constant")


@dataclass(frozen=True, slots=True)
class Row:
    """One episode of a policy.

    Attributes:
        policy: Its name.
        seed: Episode seed.
        stratum: Third of the day and direction of demand.
        held_fraction: Share of the steps after step 12 in which every target held.
        total: The grader's score.
        success: The grader's verdict.
        harms: Harm done.
    """

    policy: str
    seed: int
    stratum: str
    held_fraction: float
    total: float
    success: bool
    harms: int

    @property
    def won(self) -> bool:
        """Whether it did what a certificate must: half of the time in target, no harm."""
        return self.held_fraction >= LEAST_HELD and not self.harms


def nop(world: CloudWorld, history: History, key: Key) -> Joint:
    """Do nothing."""
    del world, history, key
    return ()


def at_random(world: CloudWorld, history: History, key: Key) -> Joint:
    """Three actions of the catalogue that guardrails let pass together, by counter noise."""
    gate = Gate(world, history.now, Bounds(world.limits.max_actions_per_step))
    offered = world.catalogue(history.now)
    chosen: Joint = ()
    for draw in uniforms(key.seed, 0, _RANDOM, key.step)[:3].ravel().tolist():
        action = offered[int(draw * len(offered))]
        if action.kind != NOP and not gate.refusals((*chosen, action)):
            chosen = (*chosen, action)
    return chosen


def always(kind: str, world: CloudWorld, history: History, key: Key) -> Joint:
    """One kind of action on up to three targets a step, drawn anew; marks where it must."""
    gate = Gate(world, history.now, Bounds(world.limits.max_actions_per_step))
    kinds = (kind, "mark") if kind == "terminate" else (kind,)
    offered = [action for action in world.catalogue(history.now) if action.kind in kinds]
    draws = uniforms(key.seed, np.arange(len(offered)), _TURN, key.step)[0]
    chosen: Joint = ()
    for place in np.argsort(draws, kind="stable").tolist():
        if len(chosen) == world.limits.max_actions_per_step:
            break
        if not gate.refusals((*chosen, offered[place])):
            chosen = (*chosen, offered[place])
    return chosen


def selfish(objective: str, world: CloudWorld, history: History, key: Key) -> Joint:
    """Plan greedily for one objective."""
    sight = Sight(_SELFISH.steps, _SELFISH.samples, _SELFISH.singles, objectives=(objective,))
    return greedy(world, history, key, sight)


def round_robin(world: CloudWorld, history: History, key: Key) -> Joint:
    """The selfish policies in turn."""
    return selfish(OBJECTIVES[key.step % len(OBJECTIVES)], world, history, key)


def blind(world: CloudWorld, history: History, key: Key) -> Joint:
    """The look-ahead planner with a room's eyes."""
    return lookahead(world, history, key)


def default_room(world: CloudWorld, history: History, key: Key) -> Joint:
    """The default room: four rule personas and the default protocol, as in `make run`."""
    room = _room(world.scenario.name)
    proposals = {}
    for seat, persona in room.personas.items():
        request = Request(Ask(seat, "propose"), key.step, history.now, history, world)
        reply = persona.answer(request)
        proposals[seat] = reply.proposals if isinstance(reply, Reply) else ()
    laid = lay_table(world, history, key.seed, room.seats, proposals, room.rules)
    deliberation = room.protocol.decide(laid.context)
    try:
        next(deliberation)
    except StopIteration as done:
        decision: Decision = done.value
        return decision.chosen.now
    raise RuntimeError("the default protocol asks its seats; a baseline cannot answer for them")


@cache
def _room(scenario: str) -> Room:
    return build_room(EpisodeSpec(scenario=scenario, driver="loop", store="inprocess", out=""))


POLICIES: Mapping[str, Policy] = {
    "nop": nop,
    "random": at_random,
    **{f"always {kind}": partial(always, kind) for kind in CONSTANT},
    **{f"selfish {objective}": partial(selfish, objective) for objective in OBJECTIVES},
    "round_robin": round_robin,
    "lookahead": blind,
    "room": default_room,
}
"""Name → policy."""


def play(world: CloudWorld, name: str, seed: int) -> Row:
    """Play one episode with a policy."""
    scenario, policy = world.scenario, POLICIES[name]
    state = world.reset(scenario, [seed])
    where = stratum_of(float(state.columns["w.start_hour_utc"][0, 0]), demand_slope(state))
    history, graded = History(scenario), []
    seen = world.observe(state)
    while seen.step < seen.horizon:
        history.observations.append(seen)
        joint = policy(world, history, Key(seed, seen.step))
        state, outcomes, _ = world.step(state, joint)
        history.decisions.append(joint)
        seen = world.observe(state)
        graded.append(GradedStep.of(seen, joint, outcomes))
    card = grade(scenario, graded)
    held = [step.success for step in graded]
    harms = int(card.components["harm"].value)
    return Row(name, seed, where, held_fraction(held), card.total, card.success, harms)


def clairvoyant(scenario: Scenario, seed: int) -> Row:
    """The certificate's plan of one seed, as a row: the shipped one, else what a search finds."""
    shipped = certificate_of(scenario, seed)
    if shipped is not None:
        world = cloud_world(scenario)
        proof = prove(world, world.reset(scenario, [seed]), shipped.joints())
        where = stratum_of(shipped.start_hour_utc, shipped.demand_slope)
        return Row(
            CERTIFICATE, seed, where, proof.held_fraction, proof.total, proof.success, proof.harms
        )
    verdict = certify(scenario, seed)
    found = verdict.certificate
    where = stratum_of(found.start_hour_utc, found.demand_slope)
    return Row(
        CERTIFICATE, seed, where, found.held_fraction, verdict.total, verdict.success,
        verdict.harms,
    )  # fmt: skip


class Kept:
    """Rows that were measured, in a file of JSON lines; the last of a policy and seed counts.

    Args:
        path: The file; it is made when the first row is added.
        scenario: Whose rows to read; lines of other scenarios stay as they are.
    """

    def __init__(self, path: Path, scenario: Scenario) -> None:
        self._path, self._digest = path, scenario.digest
        self.rows: dict[tuple[str, int], Row] = {}
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        for line in lines:
            try:
                found = json.loads(line)
                if found.pop("digest") == self._digest:
                    row = Row(**found)
                    self.rows[row.policy, row.seed] = row
            except (ValueError, TypeError, KeyError):
                # Half a line is what a process that was killed leaves.
                continue

    def add(self, row: Row) -> None:
        """Keep a row, written in one piece: several processes may add to one file."""
        self.rows[row.policy, row.seed] = row
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"digest": self._digest, **asdict(row)}) + "\n")

    def in_order(self) -> list[Row]:
        """All rows, by policy as listed and seed."""
        places = {name: at for at, name in enumerate((*POLICIES, CERTIFICATE))}
        return sorted(self.rows.values(), key=lambda row: (places[row.policy], row.seed))


def measure(
    scenario: Scenario,
    seeds: Sequence[int],
    names: Iterable[str],
    kept: Kept,
    tell: Callable[[str], None],
) -> list[Row]:
    """Every policy on every seed that is not kept yet; all that is kept then."""
    world = cloud_world(scenario)
    for name in names:
        for seed in seeds:
            if (name, seed) in kept.rows:
                continue
            certified = name == CERTIFICATE
            kept.add(clairvoyant(scenario, seed) if certified else play(world, name, seed))
            tell(f"{scenario.name}: {name}, seed {seed}")
    return kept.in_order()


def summary(scenario: Scenario, rows: Sequence[Row]) -> dict[str, Any]:
    """Rates and means per policy, over all seeds and by stratum."""
    policies: dict[str, Any] = {}
    for name in dict.fromkeys(row.policy for row in rows):
        mine = [row for row in rows if row.policy == name]
        strata = sorted({row.stratum for row in mine})
        policies[name] = {
            **_figures(mine),
            "by_stratum": {
                where: _figures([row for row in mine if row.stratum == where]) for where in strata
            },
        }
    seeds = sorted({row.seed for row in rows})
    return {"digest": scenario.digest, "seeds": seeds, "policies": policies}


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "n": len(rows),
        "won_fraction": round(sum(row.won for row in rows) / len(rows), 4),
        "success_fraction": round(sum(row.success for row in rows) / len(rows), 4),
        "harmed_fraction": round(sum(row.harms > 0 for row in rows) / len(rows), 4),
        "held_fraction": estimate([row.held_fraction for row in rows]),
        "total": estimate([row.total for row in rows]),
    }


def table(measured: Mapping[str, Any]) -> str:
    """The baselines as Markdown."""
    lines = [
        "# Cloud baselines", "",
        "Raw seeds, none picked; written by `make baselines`. *Won*: every target held in at "
        "least half of the steps after step 12 and nothing was harmed, which is what a "
        "certificate must do. *Held*: share of those steps. *Score*: the grader's total, with "
        "its standard error.",
    ]  # fmt: skip
    for name, part in measured.items():
        seeds = part["seeds"]
        lines += [
            "",
            f"## {name}",
            "",
            f"Seeds {seeds[0]} to {seeds[-1]}; *n* is how many of them.",
        ]
        lines += [*_certificates(name), ""]
        lines += [f"| policy | {_HEAD} |", "|---" * 7 + "|"]
        for policy, figures in part["policies"].items():
            lines.append(f"| {policy} | {_cells(figures)} |")
        lines += ["", "By start hour (UTC) and direction of demand:", ""]
        lines += [f"| policy | stratum | {_HEAD} |", "|---" * 8 + "|"]
        for policy in (CERTIFICATE, "lookahead"):
            for where, figures in part["policies"].get(policy, {}).get("by_stratum", {}).items():
                lines.append(f"| {policy} | {where} | {_cells(figures)} |")
    return "\n".join(lines) + "\n"


def _certificates(name: str) -> list[str]:
    """What ships of certificates for a scenario, in a sentence."""
    path = certificates_path(name)
    if path is None or not path.is_file():
        return ["No certificates ship."]
    found = read_certificates(path)
    return [
        f"Certificates: {found.certified} of {found.tried} raw seeds were certified "
        f"({100 * found.certified / max(found.tried, 1):.0f} %), {len(found.certificates)} ship."
    ]


def _cells(figures: Mapping[str, Any]) -> str:
    total = figures["total"]
    error = "" if total["se"] is None else f" ± {total['se']:.3f}"
    return (
        f"{figures['n']} | {100 * figures['won_fraction']:.0f} % | "
        f"{100 * figures['success_fraction']:.0f} % | {100 * figures['harmed_fraction']:.0f} % | "
        f"{figures['held_fraction']['mean']:.2f} | {total['mean']:.3f}{error}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the JSON that graders read and the table that people read."""
    from orchestrator.cli import printing
    from orchestrator.study.tournament import seeds_of

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scenarios", default="cloud/easy,cloud/medium,cloud/hard,cloud/war")
    parser.add_argument("--seeds", default="0:16")
    parser.add_argument("--policies", default=",".join((*POLICIES, CERTIFICATE)))
    parser.add_argument(
        "--rows", default="build/baselines.jsonl", help="where every episode is kept meanwhile"
    )
    parser.add_argument("--json", default=str(BASELINES_FILE), help="where the figures go")
    parser.add_argument("--table", default="docs/cloud-baselines.md", help="where the table goes")
    asked = parser.parse_args(arguments)
    path = Path(asked.json)
    measured: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    for name in asked.scenarios.split(","):
        scenario = load_scenario(name)
        kept, policies = Kept(Path(asked.rows), scenario), asked.policies.split(",")
        rows = measure(scenario, seeds_of(asked.seeds), policies, kept, printing.talk)
        measured[name] = summary(scenario, rows)
        path.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        Path(asked.table).write_text(table(measured), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

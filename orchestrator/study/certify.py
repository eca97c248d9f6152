"""Certificates: find a plan that wins a seed, and prove it by playing it.

The search knows the true state and noise (`clairvoyant`); the proof does not trust it. It plays
the plan through `World.step` from a fresh start and counts what held. Several runs of the search
with different tastes share a seed; the plan that holds longest is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.study.clairvoyant import Taste, plan
from world.actions import joint_id
from world.errors import ConfigError
from world.graders.cloud import grade, net_saving_usd, time_in_target
from world.graders.scorecard import GradedStep
from world.model import Joint, Scenario, significant
from world.scenarios.certificates import (
    LEAST_HELD,
    SCHEMA,
    Certificate,
    Certificates,
    held_fraction,
)
from world.worlds.cloud.demand import regular
from world.worlds.cloud.state import State
from world.worlds.cloud.world import CloudWorld

PLANNER = "clairvoyant/2"
TASTES = (
    Taste(
        per_action=False,
        backlog=2.0,
        latency=2.0,
        missed=1.5,
        money=8.0,
        stay_steps=12,
        look_ahead_steps=20,
    ),
    Taste(per_action=False, backlog=2.0),
    Taste(look_ahead_steps=20),
    Taste(per_action=False, look_ahead_steps=22, backlog=2.0, latency=2.0),
    Taste(per_action=False, look_ahead_steps=16, backlog=2.0, latency=2.0, money=8.0),
)
ENOUGH = 0.7
"""Share held from which no further taste is tried."""
MANY_ROWS, FEW_TASTES = 250, 1
"""In inventories above so many rows only so many tastes are tried: a minute a seed is the limit."""
HOPELESS = 0.15
"""Share held below which only one more taste is tried."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What playing a plan came to.

    Attributes:
        held: Whether every target held, one per step.
        harms: Harm done.
        reward_total: Sum of rewards.
        joint_fraction: Share in target with the run-out.
        saving_usd: Against doing nothing, net of one-offs.
        total: The grader's score.
        success: The grader's verdict.
    """

    held: tuple[bool, ...]
    harms: int
    reward_total: float
    joint_fraction: float
    saving_usd: float
    total: float
    success: bool

    @property
    def held_fraction(self) -> float:
        """Share of the steps after step 12 in which every target held."""
        return held_fraction(self.held)

    @property
    def certified(self) -> bool:
        """Whether it proves that the seed can be won."""
        return self.held_fraction >= LEAST_HELD and not self.harms


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the search found for one seed.

    Attributes:
        certified: Whether the plan proves that the seed can be won.
        certificate: The best plan and what it reached, certified or not.
        harms: Harm that this plan does.
        total: The grader's score of the plan.
        success: The grader's verdict on it.
    """

    certified: bool
    certificate: Certificate
    harms: int
    total: float
    success: bool


def certify(scenario: Scenario, seed: int) -> Verdict:
    """Search for a plan that wins a seed.

    Args:
        scenario: A scenario of the cloud world.
        seed: Episode seed.

    Raises:
        ConfigError: The scenario is of another world.
    """
    world = cloud_world(scenario)
    start = world.reset(scenario, [seed])
    best: tuple[Proof, tuple[Joint, ...]] | None = None
    tastes = TASTES[:FEW_TASTES] if world.settings.rows > MANY_ROWS else TASTES
    for tries, taste in enumerate(tastes):
        if best is not None and tries > 1 and best[0].held_fraction < HOPELESS:
            break
        joints = plan(start, taste)
        proof = prove(world, start, joints)
        if best is None or _better(proof, best[0]):
            best = proof, joints
        if best[0].certified and best[0].held_fraction >= ENOUGH:
            break
    if best is None:
        raise RuntimeError("no taste was tried")
    proof, joints = best
    certificate = Certificate(
        seed=seed,
        start_hour_utc=float(start.columns["w.start_hour_utc"][0, 0]),
        demand_slope=demand_slope(start),
        held_fraction=significant(proof.held_fraction),
        joint_fraction=significant(proof.joint_fraction),
        saving_usd=significant(proof.saving_usd),
        reward_total=significant(proof.reward_total),
        plan=tuple(joint_id(joint) if joint else "nop" for joint in joints),
    )
    return Verdict(proof.certified, certificate, proof.harms, proof.total, proof.success)


def cloud_world(scenario: Scenario) -> CloudWorld:
    """The world that plays a scenario, if it can be certified.

    Raises:
        ConfigError: It is another world.
    """
    if scenario.world != "cloud":
        raise ConfigError(
            f"scenario {scenario.name!r} plays the world {scenario.world!r}",
            "certificates exist for the cloud world only",
            "Name one of its scenarios, for example cloud/medium",
        )
    return CloudWorld(scenario)


def prove(world: CloudWorld, start: State, joints: Sequence[Joint]) -> Proof:
    """Play a plan from step 0 and see what holds.

    Args:
        world: The world.
        start: A state at step 0 (B = 1).
        joints: One joint action per step of the episode.
    """
    state, graded = start, []
    for joint in joints:
        state, outcomes, _ = world.step(state, joint)
        graded.append(GradedStep.of(world.observe(state), joint, outcomes))
    audit = graded[-1].facts["audit"]
    card = grade(world.scenario, graded)
    return Proof(
        held=tuple(step.success for step in graded),
        harms=max(int(audit["harms"]), sum(len(step.violations) for step in graded)),
        reward_total=sum(step.reward for step in graded),
        joint_fraction=time_in_target(world.scenario, graded, audit).joint,
        saving_usd=net_saving_usd(audit),
        total=card.total,
        success=card.success,
    )


def _better(one: Proof, other: Proof) -> bool:
    return (not one.harms, one.held_fraction, one.joint_fraction) > (
        not other.harms, other.held_fraction, other.joint_fraction,
    )  # fmt: skip


def demand_slope(start: State) -> float:
    """Change of the users' regular demand over the episode, as a fraction of the start's."""
    settings = start.settings
    users = ~settings.batch
    hours = settings.scenario.horizon * settings.dt_h
    now = regular(settings, start.columns, start.hour)[:, users]
    then = regular(settings, start.columns, start.hour + hours)[:, users]
    first = float(np.add.reduce(now[0]))
    return significant((float(np.add.reduce(then[0])) - first) / max(first, 1e-9))


def collect(
    scenario: Scenario, verdicts: Sequence[Verdict], most: int | None = None
) -> Certificates:
    """The certificates among verdicts, as a file.

    Args:
        scenario: Whose seeds they are.
        verdicts: One per seed that was searched, failed ones included.
        most: Keep so many at most, spread over the strata; None keeps all.
    """
    certified = [verdict for verdict in verdicts if verdict.certified]
    kept = certified if most is None else stratified(certified, most)
    return Certificates(
        schema=SCHEMA,
        scenario=scenario.name,
        digest=scenario.digest,
        planner=PLANNER,
        tried=len(verdicts),
        certified=len(certified),
        certificates=tuple(verdict.certificate for verdict in kept),
    )


def stratum_of(start_hour_utc: float, demand_slope: float) -> str:
    """Third of the day and direction of demand, for example ``08-16h rising``."""
    third = int(start_hour_utc // 8)
    direction = "rising" if demand_slope >= 0.0 else "falling"
    return f"{third * 8:02d}-{third * 8 + 8:02d}h {direction}"


def stratum(certificate: Certificate) -> str:
    """The stratum of a certificate's seed."""
    return stratum_of(certificate.start_hour_utc, certificate.demand_slope)


def stratified(verdicts: Sequence[Verdict], most: int) -> list[Verdict]:
    """Certified seeds in turn from every stratum, `most` of them, in order of seed."""
    cells: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.certified:
            cells.setdefault(stratum(verdict.certificate), []).append(verdict)
    chosen: list[Verdict] = []
    while len(chosen) < most and any(cells.values()):
        for name in sorted(cells):
            if cells[name] and len(chosen) < most:
                chosen.append(cells[name].pop(0))
    return sorted(chosen, key=lambda verdict: verdict.certificate.seed)

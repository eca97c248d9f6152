"""Certificates: proof, seed by seed, that a scenario can be won under its own rules.

A certificate is a plan that a planner found who knew the true state and the true noise. It holds
every target in at least half of the steps after step 12, does no harm, and anybody can replay it.
Files lie in ``cloud/certificates``, one per scenario, and are bound to the scenario's digest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from world.actions import parse_joint
from world.errors import ScenarioError
from world.model import Joint, Scenario
from world.scenarios.loader import FOLDER

SCHEMA = "certificates/1"
SETTLING_STEPS = 12
"""Steps that a plan may take to get into target before it must hold."""
LEAST_HELD = 0.5
"""Share of the steps after those in which a certificate holds every target."""
_NAME = re.compile(r"([a-z]{1,40})/([a-z0-9_]{1,80})")


class Certificate(BaseModel):
    """One seed's proof.

    Attributes:
        seed: Episode seed.
        start_hour_utc: Hour of the day at step 0.
        demand_slope: Change of the users' regular demand over the episode, as a fraction of what
            it is at the start.
        held_fraction: Share of the steps after step 12 in which every target held.
        joint_fraction: Share of all steps, and of 12 more in which nobody acts, in which every
            target held; what a grader compares an episode with.
        saving_usd: What the plan saved against doing nothing, net of one-offs, over those steps.
        reward_total: Sum of the environment's rewards.
        plan: Joint action id per step; ``nop`` where nothing is done.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = Field(ge=0)
    start_hour_utc: float = Field(ge=0, lt=24)
    demand_slope: float
    held_fraction: float = Field(ge=0, le=1)
    joint_fraction: float = Field(ge=0, le=1)
    saving_usd: float
    reward_total: float
    plan: tuple[str, ...]

    def joints(self) -> tuple[Joint, ...]:
        """The plan as actions."""
        return tuple(() if text == "nop" else parse_joint(text) for text in self.plan)


class Certificates(BaseModel):
    """A file of certificates.

    Attributes:
        format: Version of this form, written as ``schema``.
        scenario: Name of the scenario.
        digest: Its digest when the plans were found.
        planner: Which planner found them.
        tried: Raw seeds that were searched; 0 is not known.
        certified: How many of those were certified; as many or fewer are kept here.
        certificates: One per seed, in order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: str = Field(alias="schema", pattern=f"^{SCHEMA}$")
    scenario: str
    digest: str
    planner: str
    tried: int = Field(default=0, ge=0)
    certified: int = Field(default=0, ge=0)
    certificates: tuple[Certificate, ...]

    def as_text(self) -> str:
        """The file's text."""
        return self.model_dump_json(by_alias=True, indent=1) + "\n"


def certificates_path(name: str, folder: Path = FOLDER) -> Path | None:
    """Where the certificates of a shipped scenario lie; None for a name that cannot have any."""
    match = _NAME.fullmatch(name)
    return folder / match[1] / "certificates" / f"{match[2]}.json" if match else None


def read_certificates(path: Path) -> Certificates:
    """Read one file.

    Raises:
        ScenarioError: It cannot be read, or is no file of certificates.
    """
    try:
        return Certificates.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read", error.strerror or "", "") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ScenarioError(
            f"{path}: {where}: {first['msg']}", "", "Write it anew: scenarios certify --out"
        ) from error


@lru_cache(maxsize=8)
def _shipped(name: str) -> Certificates | None:
    path = certificates_path(name)
    return read_certificates(path) if path is not None and path.is_file() else None


def certificate_of(scenario: Scenario, seed: int) -> Certificate | None:
    """The shipped certificate of a seed, if the scenario is exactly the one that it was made for.

    Raises:
        ScenarioError: The shipped file is damaged.
    """
    found = _shipped(scenario.name)
    if found is None or found.digest != scenario.digest:
        return None
    return next((entry for entry in found.certificates if entry.seed == seed), None)


def held_fraction(held: Sequence[bool]) -> float:
    """Share of the steps after step 12 in which every target held."""
    counted = held[SETTLING_STEPS:]
    return sum(counted) / len(counted) if counted else 0.0

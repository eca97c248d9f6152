"""The rules of a room and of its seats: numbers and powers, set before anybody speaks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from policies.controls import Freeze
from policies.guardrails import RedLine
from policies.records import MAX_CANDIDATES
from policies.utility import UtilitySpec
from world.errors import ConfigError
from world.model import Continuation

DISAGREEMENTS = ("mean_legal", "projected_nop", "current")


@dataclass(frozen=True, slots=True)
class SeatRules:
    """What the room must know of one seat: numbers and powers, never words.

    Attributes:
        seat: Seat name, for example ``resource``.
        persona: Persona name.
        utility: How it values consequences.
        red_lines: What it will not see crossed.
        weight: How much it counts, 0 or more.
        can_veto: Whether its red lines veto; without it they are warnings.
        may_propose: Action kinds that it may propose; empty is all.
        disagreement: Value of no deal to it: ``mean_legal``, ``projected_nop``, ``current`` or
            ``const:NUMBER``; "" takes the room's.
        continuation: Name of the policy that it imagines to follow a plan, one of the world's
            ``continuations`` or ``nop``; "" takes the room's.
        reported: Share of its own reported ballot in what counts, 0–1; 0 asks for none.
        commander: Whether it commands where there is no deal.
        mediator: Whether it mediates.

    Raises:
        ConfigError: A weight, a share or a disagreement that cannot work.
    """

    seat: str
    persona: str
    utility: UtilitySpec
    red_lines: tuple[RedLine, ...] = ()
    weight: float = 1.0
    can_veto: bool = True
    may_propose: tuple[str, ...] = ()
    disagreement: str = ""
    continuation: str = ""
    reported: float = 0.0
    commander: bool = False
    mediator: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.reported <= 1:
            raise ConfigError(
                f"seat {self.seat}: the reported share of its ballot is {self.reported}",
                "a share is a number from 0 to 1",
                "Correct ballot.source",
            )
        if not (math.isfinite(self.weight) and 0 <= self.weight <= 1e9):
            raise ConfigError(
                f"seat {self.seat}: weight is {self.weight}",
                "a weight is a number from 0 to 1e9",
                "Correct powers.weight",
            )
        if self.disagreement not in {"", *DISAGREEMENTS}:
            constant(self.disagreement, self.seat)


def constant(disagreement: str, seat: str) -> float:
    """The number in ``const:NUMBER``.

    Raises:
        ConfigError: The text is no disagreement rule.
    """
    head, _, number = disagreement.partition(":")
    try:
        value = float(number) if head == "const" else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(
            f"seat {seat}: disagreement is {disagreement!r}",
            "it says what no deal is worth to the seat",
            f"Write one of: {', '.join(DISAGREEMENTS)}, const:NUMBER",
        )
    return value


@dataclass(frozen=True, slots=True)
class RoomRules:
    """The rules of the room. Only the operator sets them.

    Attributes:
        no_deal: What decides when a protocol finds no deal: ``nop``, a protocol's name, or
            ``commander``.
        disagreement: Value of no deal: ``mean_legal``, ``projected_nop`` or ``current``.
        lookahead_steps: H, steps that each candidate is projected.
        samples: K, belief samples; 0 is one sample of mean noise.
        continuation: Policy that continues a plan up to H; None is nop.
        plan_steps: Longest plan on the table, 1 or 2, where the world allows plans at all.
        max_candidates: Most candidates that are projected and balloted.
        max_catalogue: In a world of one action a step, a catalogue of up to this many actions
            is the candidate set as a whole.
        blast_radius: Most distinct targets that one step may touch; 0 is no limit.
        refuse_oscillation: Whether a step that would make A, B, A, B is refused.
        blast_share: Largest share (0–1) of a service's tier or of the fleet that one step may
            touch; 0 is no limit.
        freezes: Windows in which nothing is changed.

    Raises:
        ConfigError: A number out of range, or an unknown disagreement.
    """

    no_deal: str = "weighted_score"
    disagreement: str = "mean_legal"
    lookahead_steps: int = 1
    samples: int = 0
    continuation: Continuation | None = None
    plan_steps: int = 2
    max_candidates: int = MAX_CANDIDATES
    max_catalogue: int = 64
    blast_radius: int = 0
    refuse_oscillation: bool = False
    blast_share: float = 0.0
    freezes: tuple[Freeze, ...] = ()

    def __post_init__(self) -> None:
        for name, value, low in (
            ("lookahead_steps", self.lookahead_steps, 1),
            ("samples", self.samples, 0),
            ("plan_steps", self.plan_steps, 1),
            ("max_candidates", self.max_candidates, 1),
            ("max_catalogue", self.max_catalogue, 0),
            ("blast_radius", self.blast_radius, 0),
        ):
            if value < low:
                raise ConfigError(f"{name} is {value}", f"it is at least {low}", "Correct it")
        if self.disagreement not in DISAGREEMENTS:
            raise ConfigError(
                f"there is no disagreement rule {self.disagreement!r}",
                "it says what no deal is worth to a seat",
                f"Write one of: {', '.join(DISAGREEMENTS)}",
            )

"""What an episode is asked to be, and what it came to: the two plain records around a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

ROLES = ("resource", "cost", "sustainability", "janitor")
"""Default seats, in room order."""

DEFAULT_SCENARIO = "cloud/medium"
DEFAULT_PROTOCOL = "weighted_score"


class EpisodeSpec(BaseModel):
    """Everything that decides an episode. Plain JSON, so that it crosses processes.

    Attributes:
        scenario: Scenario name, or the path of a scenario file.
        seed: Episode seed, 0 or more.
        steps: Replaces the scenario's horizon when given.
        personas: Role → persona name or path. Roles that are not named keep their default;
            a new role is a further seat.
        absent: Seats, of those above, that stay empty: no proposals and no ballot.
        overrides: ``ROLE.field=value`` in order.
        protocol: Protocol name.
        no_deal: ``nop``, ``commander`` or a protocol name.
        disagreement: Value of no deal to a seat.
        lookahead_steps: H, steps that a candidate is projected; None is the scenario's, else the
            world's.
        samples: K, belief samples; 0 is mean noise; None as above.
        plan_steps: Longest plan on the table, 1 or 2; None as above.
        driver: ``graph`` (LangGraph) or ``loop`` (plain Python); same trace bytes.
        store: ``embedded``, ``:memory:``, ``inprocess`` or a URL.
        checkpointer: LangGraph checkpointer; only for human interrupts.
        out: Parent folder of the runs; "" writes no files (sweeps).
        persona_path: Further folders in which persona files are looked up.
        human: Seats at which a person sits.
        approve: What a person must approve before it is done: ``none``, ``destructive``, ``all``.
        freeze: Windows without changes, beside the scenario's: ``10:20``, ``22:00-06:00``.
        blast_radius: Most distinct targets that one step may touch; 0 is the scenario's, or none.
        blast_share: Largest share (0–1) of a service's tier or of the fleet that one step may
            touch; 0 is the scenario's, or none.
        model: Model that every persona speaks through; "" leaves it to their files.
        default_model: Model of an llm persona whose file names none.
        base_url: Endpoint of the models; "" takes the environment's.
        usd_per_mtok: Price of the models, ``IN/OUT`` in dollars per million tokens; "" unknown.
        budget_usd: Most that all seats may spend on models; None is no limit.
        record: Folder that model answers are written to; "" for none.
        playback: Folder that model answers are read from; "" for none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenario: str = DEFAULT_SCENARIO
    seed: int = Field(default=1, ge=0, lt=2**63)
    steps: int | None = Field(default=None, ge=1, le=1_000_000)
    personas: dict[str, str] = {}
    absent: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    protocol: str = DEFAULT_PROTOCOL
    no_deal: str = "weighted_score"
    disagreement: Literal["mean_legal", "projected_nop", "current"] = "mean_legal"
    lookahead_steps: int | None = Field(default=None, ge=1, le=64)
    samples: int | None = Field(default=None, ge=0, le=256)
    plan_steps: int | None = Field(default=None, ge=1, le=2)
    driver: Literal["graph", "loop"] = "graph"
    store: str = "embedded"
    checkpointer: Literal["none", "sqlite", "redis"] = "none"
    out: str = "runs"
    persona_path: tuple[str, ...] = ()
    human: tuple[str, ...] = ()
    approve: Literal["none", "destructive", "all"] = "none"
    freeze: tuple[str, ...] = ()
    blast_radius: int = Field(default=0, ge=0, le=1_000_000)
    blast_share: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    model: str = Field(default="", max_length=200)
    default_model: str = Field(default="", max_length=200)
    base_url: str = Field(default="", max_length=2048)
    usd_per_mtok: str = Field(default="", max_length=80)
    budget_usd: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)
    record: str = ""
    playback: str = ""


class Spent(BaseModel):
    """What an episode cost in model calls.

    Attributes:
        calls: Model calls.
        tokens_in: Prompt tokens.
        tokens_out: Completion tokens.
        usd: Dollars; None where a price is not known, which is not zero.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0


class EpisodeResult(BaseModel):
    """What an episode came to; the document of ``run --json``.

    Attributes:
        run: Run id.
        scenario: Scenario name.
        seed: Seed.
        protocol: Protocol name.
        personas: Role → persona name.
        driver: Driver used.
        store: Store used, as `WorldStore.name`.
        steps: Steps committed.
        stop_reason: ``horizon``, the world's own word, ``interrupted``, or ``waiting`` for the
            answers to `questions`.
        success: The grader's verdict at the end.
        success_any: Whether every target held after some step.
        score: Scorecard total, 0.01–0.99.
        reward_total: Sum of the environment's rewards.
        rewards: Reward per step.
        metrics_end: Metric → value after the last step.
        violations: Harm and broken rules, one line each.
        usage: Calls, tokens and dollars of all seats.
        trace: Path of the trace file; "" when none was written.
        trace_sha: Hash of the last link.
        scorecard: The whole scorecard.
        questions: What people are asked, where the run waits for them; each with its ``seat``.
        fallbacks: Seats for which something stood in: ``{seat, count, first reason}``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str
    scenario: str
    seed: int
    protocol: str
    personas: dict[str, str]
    driver: str
    store: str
    steps: int
    stop_reason: str
    success: bool
    success_any: bool
    score: float
    reward_total: float
    rewards: tuple[float, ...]
    metrics_end: dict[str, float]
    violations: tuple[str, ...]
    usage: Spent
    trace: str
    trace_sha: str
    scorecard: dict[str, Any]
    questions: tuple[dict[str, Any], ...] = ()
    fallbacks: tuple[dict[str, Any], ...] = ()


class Observer(Protocol):
    """Somebody who watches an episode: the line log, the live view, a server.

    Every method may be called from the driver's thread. An observer never changes the episode.
    """

    def started(self, run: str, header: Mapping[str, Any]) -> None:
        """The run id is claimed.

        `header`: the data of run_started, plus driver, store (its description), trace (path),
        resumed_at (steps already committed) and run.
        """
        ...

    def live(self, step: int, kind: str, data: Mapping[str, Any]) -> None:
        """Something happened before the commit: ``observation``, ``proposals``, ``decision``."""
        ...

    def committed(self, step: int, record: Mapping[str, Any]) -> None:
        """A step was acknowledged by the store.

        `record`: step, horizon, action (id), reward, done, error (None or text), success,
        metrics, targets, proposals, decision (event data).
        """
        ...

    def ended(self, result: EpisodeResult) -> None:
        """The episode is over, or was interrupted (stop_reason says which)."""
        ...

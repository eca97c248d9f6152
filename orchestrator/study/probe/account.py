"""A probe from its plan to its document: situations, questions, answers, measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agents.backends.llm.meter import Meter, Price
from agents.backends.llm.prompt import render
from orchestrator.spec import EpisodeSpec
from orchestrator.study.probe.asking import Interviewer
from orchestrator.study.probe.measures import (
    Trial,
    honesty_gap,
    obedience,
    stability,
    stubbornness,
    sycophancy,
)
from orchestrator.study.probe.questions import (
    Asking,
    Question,
    confederate,
    first_choices,
    target_of,
)
from orchestrator.study.probe.situations import Situation, Walk, crossed_in, own_lines, walk
from orchestrator.study.seeds import ranges_of
from policies.table import lay_table
from world.errors import ConfigError
from world.model import significant

SCHEMA = "probe/1"
MOST_QUESTIONS = 100_000
_SHOWN_AGAIN = 0.15
"""Most that a question adds about others and evidence, as a share of the prompt's size."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is probed, and how much of it.

    Attributes:
        spec: The room, with the persona in its seat.
        seat: The seat that is probed.
        seeds: Episode seeds.
        situations: Situations per seed, at most.
        every_steps: They stand at every so many steps.
        variants: Other wordings, and other orders, of each question.
    """

    spec: EpisodeSpec
    seat: str
    seeds: tuple[int, ...]
    situations: int = 2
    every_steps: int = 5
    variants: int = 3

    @property
    def most(self) -> int:
        """Most situations."""
        return len(self.seeds) * self.situations


@dataclass(frozen=True, slots=True)
class Announcement:
    """What is known before the first question.

    Attributes:
        questions: Most questions.
        usd: Most dollars that they can cost if none has to be repeated; None is not known.
        model: Whether a model is asked.
    """

    questions: int
    usd: float | None
    model: bool


class Probe:
    """One probe; `run` asks the questions.

    Attributes:
        interviewer: Who asks.
        walk: The situations.
        trials: What was answered in each of them, once it was asked.

    Raises:
        UserError: The room, the persona or the plan cannot work.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.trials: list[Trial] = []
        if plan.most > MOST_QUESTIONS:
            raise ConfigError(
                f"that is {plan.most:,} situations",
                f"a probe asks {MOST_QUESTIONS:,} questions at most",
                "Take fewer seeds or situations",
            )
        self.interviewer = Interviewer(plan.spec, plan.seat, plan.variants)
        self.walk: Walk = walk(plan.spec, plan.seat, plan.seeds, plan.situations, plan.every_steps)
        if not self.walk.situations:
            raise self._nothing()
        self.interviewer.fits(self.walk.situations[0].room.world)
        if self._each * len(self.walk.situations) > MOST_QUESTIONS:
            raise ConfigError(
                f"that is {self._each * len(self.walk.situations):,} questions",
                f"a probe asks {MOST_QUESTIONS:,} at most",
                "Take fewer seeds or situations",
            )

    def _nothing(self) -> ConfigError:
        """Why there is no situation to probe the persona in."""
        seat, skipped = self.plan.seat, self.walk.skipped
        if not skipped:
            return ConfigError(
                "there is nothing to probe: every episode was over before its first situation",
                f"situations stand at every {self.plan.every_steps} steps",
                "Give a smaller --every, or another scenario",
            )
        return ConfigError(
            f"there is nothing to probe: {skipped} tables were looked at",
            f"on none of them could seat {seat} prefer anything",
            "Take more seeds or situations, another scenario, or a persona with objectives",
        )

    @property
    def _each(self) -> int:
        """Questions per situation: secret, proposal, wordings, orders, doses, evidence."""
        seats = self.walk.seats
        doses = seats if seats > 1 else 0
        return 3 + self.interviewer.wordings + self.plan.variants + doses

    @cached_property
    def announcement(self) -> Announcement:
        """What the probe will ask, and what that may cost."""
        count = self._each * len(self.walk.situations)
        persona = self.interviewer.persona
        if persona.backend.kind != "llm":
            return Announcement(count, 0.0, False)
        price = Price(persona.model.usd_per_mtok_in, persona.model.usd_per_mtok_out)
        if not price.known:
            return Announcement(count, None, True)
        dollars = 0.0
        for situation in self.walk.situations:
            question = Asking(situation, 1).plain(0).request
            longest = max(
                len(shown.system) + len(shown.user)
                for shown in (render(spec, question) for spec in self.interviewer.specs)
            )
            characters = longest + int(persona.prompt.max_chars * _SHOWN_AGAIN)
            dollars += self._each * Meter().reserve(price, characters, persona.model.max_tokens)
        return Announcement(count, significant(dollars), True)

    def run(self, told: Callable[[int, int], None] | None = None) -> dict[str, Any]:
        """Ask everything, and sum up.

        Args:
            told: Is told how many situations are done, of how many.

        Raises:
            WarRoomError: What is played back does not hold a question.
        """
        situations = self.walk.situations
        self.trials = []
        with self.interviewer:
            for number, situation in enumerate(situations):
                self.trials.append(self._trial(situation, 1 + number * self._each))
                if told is not None:
                    told(number + 1, len(situations))
        return self._document(self.trials)

    def _trial(self, situation: Situation, first: int) -> Trial:
        """One situation: first what nobody influenced, then the rest in its sight."""
        asking, seats = Asking(situation, first), self.walk.seats
        wordings, orders = self.interviewer.wordings, self.plan.variants
        alike: list[Question | None] = [asking.plain(0)]
        alike += [asking.plain(2 + n, wording=n + 1) for n in range(wordings)]
        alike += [asking.plain(2 + wordings + n, order=n + 1) for n in range(orders)]
        secret, *rest = self.interviewer.ballots(alike)
        line = self._line(situation, asking.proposal(1))
        target = target_of(situation, secret) if secret is not None else ""
        later: list[Question | None] = [None] * (1 + (seats if seats > 1 else 0))
        planted = ""
        if secret is not None and target:
            at = 2 + wordings + orders
            planted = min(first_choices(secret), key=lambda name: (-situation.own[name], name))
            later[0] = asking.against(at, secret, planted)
            against = confederate(situation, secret, target)
            for dose in range(seats if seats > 1 else 0):
                others = [against] * dose + [secret] * (seats - 1 - dose)
                later[1 + dose] = asking.among(at + 1 + dose, secret, others)
        evidence, *doses = self.interviewer.ballots(later)
        return Trial(
            seed=situation.seed,
            step=situation.step,
            own=situation.own,
            target=target,
            secret=secret,
            doses=tuple(doses),
            evidence=evidence,
            planted=planted,
            wordings=tuple(rest[:wordings]),
            orders=tuple(rest[wordings:]),
            line=line,
            tempted=bool(situation.crossing) and not situation.possible <= situation.crossing,
        )

    def _line(self, situation: Situation, question: Question) -> str:
        """What its first proposal does to its own red lines."""
        reply = self.interviewer.replies([question])[0]
        lines = own_lines(situation.room, situation.seat)
        if reply is None or not lines:
            return "none"
        if situation.possible <= situation.crossing:
            return "no_choice"
        table = lay_table(
            situation.room.world,
            situation.history,
            situation.seed,
            situation.room.seats,
            {situation.seat: reply.proposals[:1]},
            situation.room.rules,
        )
        source = f"{situation.seat}#1"
        own = next((c for c in table.context.candidates if source in c.origin), None)
        if own is None or not own.feasible:
            return "refused"  # It was not projected, so that nobody knows what it would cross.
        return "crossed" if own.id in crossed_in(table, situation.seat, lines) else "kept"

    def _document(self, trials: list[Trial]) -> dict[str, Any]:
        plan, interviewer = self.plan, self.interviewer
        scenario = self.walk.situations[0].room.scenario
        announced = self.announcement
        return {
            "schema": SCHEMA,
            "persona": interviewer.persona.id,
            "digest": interviewer.persona.digest,
            "backend": interviewer.persona.backend.kind,
            "model": interviewer.persona.model.name,
            "seat": plan.seat,
            "scenario": scenario.name,
            "scenario_digest": scenario.digest,
            "seeds": ranges_of(plan.seeds),
            "seats": self.walk.seats,
            "situations": len(trials),
            "nothing_to_choose": self.walk.skipped,
            "sycophancy": sycophancy(trials, self.walk.seats),
            "stubbornness": stubbornness(trials),
            "stability": {
                "wording": stability(trials, "wordings"),
                "order": stability(trials, "orders"),
            },
            "honesty": honesty_gap(trials),
            "red_lines": {
                "lines": len(own_lines(self.walk.situations[0].room, plan.seat)),
                "not_in_this_world": len(interviewer.persona.red_line)
                - len(own_lines(self.walk.situations[0].room, plan.seat)),
                **obedience(trials),
            },
            "questions": {
                "planned": announced.questions,
                "usd_at_most": announced.usd,
                "asked": interviewer.asked,
                "unanswered": interviewer.unanswered,
                "over_budget": interviewer.unasked,
                "faults": dict(sorted(interviewer.faults.items())),
            },
            "usage": interviewer.spent.model_dump(mode="json"),
        }

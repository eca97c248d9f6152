"""Debate: secret ballots, then ballots in sight of the others', then a vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from policies.protocols.common import break_tie, opening, voters
from policies.protocols.offers import joined
from policies.protocols.registry import protocol
from policies.records import Ask, Context, Deliberation, Reply, Round, sequence_of
from policies.reported import stated
from policies.stakes import shuffled, standing

ROUNDS = 3
"""Ballots that a seat is asked for at most, the secret one included."""
VOTE = "weighted_score"
"""The rule that counts the last ballots."""

Scores = Mapping[str, int]


class Debate:
    """Debate: seats score in secret, see each other's scores without names, score again, vote.

    Inputs: scores 0–10 that every seat with a say states, up to three times. Ids come in an
    order that depends on seed, step and seat.
    Rule: the first ballot is secret. Then each seat sees the others' ballots, without names and
    in an order that tells nothing, and may score anew; the debate ends when nobody changes
    anything, or after three ballots. The last ballots are counted by weighted score, each on
    its seat's own range of utilities; ids without a score take their projected rank.
    Ties: those of the vote, then the higher weighted sum of projected utilities, then the
    fewer actions, then the smaller id.
    No deal: never; a seat that states no ballot is counted with its projected utilities.
    Properties: what seats state counts, so exaggeration may pay; seats may give way to the
    majority for its own sake (the first ballots are kept, so that this can be measured).
    Source: Du, Li, Torralba, Tenenbaum & Mordatch, "Improving factuality and reasoning in
    language models through multiagent debate" (2023), arXiv 2305.14325; Choi et al., "When
    identity skews debate" (2025), arXiv 2510.07517, on leaving out names.
    """

    name = "debate"
    title = "Debate: secret ballot, ballots in sight of the others' without names, then a vote"
    description = (
        "Seats score all candidates 0-10 in secret, then see the others' scores without names "
        "and may change theirs, until nobody does or after three ballots; weighted score counts "
        "the last ones. Ties: those of the vote, then the higher weighted sum of projected "
        "utilities, then fewer actions, then the smaller id. No deal: never. "
        "Source: Du et al. (2023), arXiv 2305.14325; Choi et al. (2025), arXiv 2510.07517."
    )
    worlds: tuple[str, ...] = ()

    def __init__(self, rounds: int = ROUNDS, vote: str = VOTE) -> None:
        self.max_rounds = max(1, rounds)
        self.vote = vote

    def decide(self, context: Context) -> Deliberation:
        """Asks all seats for a ballot, up to `max_rounds` times."""
        early = opening(self.name, context)
        if early is not None:
            return early
        seats = [context.seats[row] for row in voters(context)]
        names = [context.candidates[place].id for place in standing(context)]
        ballots: dict[str, Scores] = {}
        rounds: list[Round] = []
        for number in range(1, self.max_rounds + 1):
            said = yield tuple(self._ask(context, seat, names, ballots, number) for seat in seats)
            before, ballots = ballots, _ballots(seats, names, said, ballots)
            changed = [seat for seat in seats if before and before[seat] != ballots[seat]]
            rounds.append(_account(number, ballots, changed))
            if len(seats) == 1 or (before and not changed):
                break
        return (yield from self._count(context, seats, ballots, rounds))

    def _count(
        self,
        context: Context,
        seats: Sequence[str],
        ballots: Mapping[str, Scores],
        rounds: Sequence[Round],
    ) -> Deliberation:
        values = context.utilities.copy()
        for seat in seats:
            row = context.seats.index(seat)
            values[row] = stated(context, row, ballots[seat])
        counted = replace(context, utilities=values)
        decision = yield from protocol(self.vote).decide(counted)
        if decision.tie:
            tied = [p for p, c in enumerate(context.candidates) if c.id in decision.tie]
            winner, _ = break_tie(context, tied)
            decision = replace(decision, chosen=context.candidates[winner])
        changed = {seat for entry in rounds for seat in entry.events[0]["changed"]}
        moved = [seat for seat in seats if seat in changed]
        told = f"{sequence_of(moved)} changed" if moved else "nobody changed"
        ballots_told = f"{len(rounds)} ballot{'s' if len(rounds) != 1 else ''}"
        return replace(
            decision,
            protocol=self.name,
            reason=f"{ballots_told}, {told}; {self.vote}: {decision.reason}",
            rounds=joined(rounds, decision.rounds),
        )

    def _ask(
        self,
        context: Context,
        seat: str,
        names: Sequence[str],
        ballots: Mapping[str, Scores],
        number: int,
    ) -> Ask:
        order = shuffled(context, names, self.name, seat)
        payload: dict[str, Any] = {"protocol": self.name, "round": number, "candidates": order}
        if ballots:
            payload["own"] = _listed(ballots[seat], order)
            others = [_listed(scores, order) for who, scores in ballots.items() if who != seat]
            # Sorted by content: the order of the lists must not tell who wrote which.
            payload["others"] = sorted(
                others, key=lambda row: [-1 if x is None else x for x in row]
            )
        return Ask(seat, "ballot", payload)


def _ballots(
    seats: Sequence[str],
    names: Sequence[str],
    said: Mapping[str, Reply],
    before: Mapping[str, Scores],
) -> dict[str, Scores]:
    """The ballots as they stand; who states none keeps the one before."""
    ballots: dict[str, Scores] = {}
    known = set(names)
    for seat in seats:
        scores = {name: said[seat].scores[name] for name in sorted(said[seat].scores)}
        scores = {name: score for name, score in scores.items() if name in known}
        ballots[seat] = scores or before.get(seat, {})
    return ballots


def _listed(scores: Scores, order: Sequence[str]) -> list[int | None]:
    return [scores.get(name) for name in order]


def _content(scores: Sequence[int | None]) -> list[int]:
    return [-1 if score is None else score for score in scores]


def _account(number: int, ballots: Mapping[str, Scores], changed: Sequence[str]) -> Round:
    event = {
        "kind": "ballots",
        "secret": number == 1,
        "stated": [seat for seat, scores in ballots.items() if scores],
        "changed": list(changed),
    }
    return Round(number, (event,))

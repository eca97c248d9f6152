from __future__ import annotations

import pytest

from policies.protocols import protocol, protocol_names
from policies.protocols.conformance import check_protocol, corner_tables, random_table
from policies.records import Ask, Candidate, Context, Decision, Deliberation
from tests.support.tables import settle
from tests.unit.test_protocols_common import TwoRounds
from world.actions import Action

ANYWHERE = [name for name in protocol_names() if not protocol(name).worlds]


@pytest.mark.parametrize("name", ANYWHERE)
@pytest.mark.parametrize("seed", range(3))
def test_every_shipped_protocol_conforms(name: str, seed: int) -> None:
    assert check_protocol(protocol(name), tables=120, seed=seed) == []


class Broken:
    name = title = description = "broken"
    max_rounds = 1
    worlds: tuple[str, ...] = ()

    def __init__(self, how: str) -> None:
        self.how = how
        self.count = 0

    def decide(self, context: Context) -> Deliberation:
        first = context.candidates[0]
        if self.how == "endless":
            while True:
                yield (Ask(context.seats[0], "respond"),)
        if self.how == "stranger":
            yield (Ask("mallory", "respond"),)
        if self.how == "raises":
            raise KeyError("oops")
        if self.how == "nothing":
            return None  # type: ignore[return-value]
        if self.how == "invents":
            return Decision(Candidate((Action("invented"),)), self.name, True)
        if self.how == "gossips":
            return Decision(first, self.name, True, scores={"nobody": 1.0})
        if self.how == "interrogates":
            yield (Ask(context.seats[0], "propose"),)
        if self.how == "tampers":
            context.utilities[0, 0] += 1.0
        if self.how == "bills a stranger":
            return Decision(first, self.name, True, payments={"mallory": 1.0})
        if self.how == "pays out":
            return Decision(first, self.name, True, payments={context.seats[0]: -1.0})
        if self.how == "moody":
            self.count += 1
            return Decision(first, self.name, True, reason=str(self.count))
        return Decision(first, self.name, True)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("endless", "more than its 1 rounds"),
        ("stranger", "does not sit here"),
        ("raises", "KeyError"),
        ("nothing", "not a Decision"),
        ("invents", "not on the table"),
        ("gossips", "speaks of 'nobody'"),
        ("moody", "differently on the same table"),
        ("interrogates", "asked for 'propose'"),
        ("tampers", "changed what lies on the table"),
        ("bills a stranger", "lets 'mallory' pay 1"),
        ("pays out", "lets 'resource' pay -1"),
        ("first listed", "agreement although every candidate is vetoed"),
        ("first listed", "one candidate, vetoed: "),
        ("first listed", "changed places"),
        ("first listed", "infeasible"),
        ("first listed", "is vetoed"),
    ],
)
def test_the_kit_names_what_a_broken_protocol_breaks(how: str, said: str) -> None:
    faults = check_protocol(Broken(how))
    assert any(said in fault for fault in faults)


def test_the_kit_plays_protocols_of_several_rounds() -> None:
    faults = check_protocol(TwoRounds())
    # Its author forgot tables on which nothing is admissible; everything else is in order.
    assert faults
    assert all("IndexError" in fault for fault in faults)


def test_the_tables_of_the_kit_hold_ties_vetoes_refusals_and_silent_seats() -> None:
    tables = [random_table(0, number) for number in range(60)]
    assert any(len(set(t.utilities[0].tolist())) < len(t.candidates) for t in tables)
    assert any(t.ballots[0].vetoes for t in tables)
    assert any(not c.feasible for t in tables for c in t.candidates)
    assert any(not t.admissible.any() for t in tables)
    assert any(not t.weights.any() for t in tables)
    assert all(any(c.feasible for c in t.candidates) for t in tables)
    assert any(ballot.abstains for t in tables for ballot in t.ballots)
    assert any((t.disagreement > 0).any() for t in tables)
    assert any(t.observation.facts["crisis"] for t in tables)
    assert any(t.commander for t in tables)


def test_the_corner_cases_are_what_they_are_called() -> None:
    tables = corner_tables()
    assert not any(
        table.admissible.any() for name, table in tables.items() if name.startswith("all vetoed")
    )
    assert all(ballot.abstains for ballot in tables["everybody abstains"].ballots)
    assert not tables["nobody weighs anything"].weights.any()
    for name in ("nothing is better than no deal", "no deal, the room does nothing"):
        for rule in ("nash", "kalai_smorodinsky", "approval"):
            assert not settle(protocol(rule).decide(tables[name])).agreement
    mandatory = settle(protocol("borda").decide(tables["one candidate, mandatory"]))
    assert "mandatory" in mandatory.reason

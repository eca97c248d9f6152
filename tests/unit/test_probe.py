"""Probes of personas whose character is known."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.spec import EpisodeSpec
from orchestrator.study.probe.account import Plan, Probe
from orchestrator.study.probe.forms import bill, dose_rows, head, measure_rows, notes
from orchestrator.study.probe.questions import Asking, confederate, first_choices, target_of
from orchestrator.study.probe.situations import Situation, walk
from orchestrator.study.probe.wording import reworded, shipped
from policies.protocols.debate import Debate
from tests.support.llm_stub import LLMStub
from tests.support.probed import character_file, conforming_model, gives_way, shown
from world.errors import ConfigError, DigestMismatchError

SEEDS = (0, 1, 2, 3)


def spec_of(name: str, role: str = "resource", **fields: Any) -> EpisodeSpec:
    base: dict[str, Any] = {
        "scenario": "cloudedge/hard",
        "personas": {role: name},
        "samples": 2,
        "lookahead_steps": 2,
        "store": "inprocess",
        "driver": "loop",
        "out": "",
    }
    return EpisodeSpec(**{**base, **fields})


def probed(name: str, role: str = "resource", **fields: Any) -> dict[str, Any]:
    return Probe(Plan(spec_of(name, role, **fields), role, SEEDS)).run()


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("resource", "cloudedge/hard"),
        ("janitor", "cloudedge/hard"),
        ("cost", "finops/right_sizing"),
    ],
)
def test_a_rule_persona_does_not_flip_is_stable_honest_and_follows_the_evidence(
    name: str, scenario: str
) -> None:
    found = probed(name, name, scenario=scenario)
    assert found["situations"] > 0
    assert found["sycophancy"]["flip_rate"]["value"] == 0.0
    assert [dose["flips"]["value"] for dose in found["sycophancy"]["doses"]] == [0.0] * 4
    assert found["sycophancy"]["harmful"]["value"] == 0.0
    assert found["stubbornness"]["value"] == 0.0
    for way in ("wording", "order"):
        assert found["stability"][way]["choice"]["value"] == 1.0
        assert found["stability"][way]["kendall_tau"]["value"] == 1.0
    assert found["honesty"]["gap"]["value"] == 0.0
    assert found["honesty"]["kendall_tau"]["value"] == 1.0
    assert found["questions"]["asked"] == found["questions"]["planned"]
    assert found["questions"]["unanswered"] == 0
    assert found["usage"] == {"calls": 0, "tokens_in": 0, "tokens_out": 0, "usd": 0.0}


def test_a_conformist_flips_at_the_rate_and_from_the_dose_that_it_was_given(
    tmp_path: Path,
) -> None:
    found = probed(character_file(tmp_path, "conformist"))
    swayed = found["sycophancy"]
    # It gives way in every second situation, from two who disagree on.
    assert [dose["flips"]["value"] for dose in swayed["doses"]] == [0.0, 0.0, 0.5, 0.5]
    assert [dose["to_majority"]["value"] for dose in swayed["doses"]] == [0.0, 0.0, 0.5, 0.5]
    assert swayed["flip_rate"]["value"] == 0.5
    assert swayed["flip_rate"]["n"] == 2 * len(SEEDS)
    low, high = swayed["flip_rate"]["interval"]
    assert low < 0.5 < high
    # Its first choice is the best for it, so that every flip does harm.
    assert swayed["harmful"]["value"] == 0.5


def test_who_turns_round_whatever_it_sees_is_fickle_and_no_sycophant(tmp_path: Path) -> None:
    swayed = probed(character_file(tmp_path, "fickle"))["sycophancy"]
    assert [dose["flips"]["value"] for dose in swayed["doses"]] == [1.0] * 4
    assert swayed["flip_rate"]["value"] == 0.0
    assert swayed["harmful"]["value"] == 1.0


def test_who_repeats_itself_under_evidence_is_stubborn(tmp_path: Path) -> None:
    found = probed(character_file(tmp_path, "stubborn"))
    assert found["stubbornness"]["value"] == 1.0
    assert found["sycophancy"]["flip_rate"]["value"] == 0.0


def test_a_ballot_turned_round_is_as_dishonest_as_can_be(tmp_path: Path) -> None:
    honest = probed(character_file(tmp_path, "liar"))["honesty"]
    assert honest["kendall_tau"]["value"] == -1.0
    assert honest["gap"]["value"] > 0.3


def test_who_likes_what_stands_first_is_stable_over_words_and_not_over_orders(
    tmp_path: Path,
) -> None:
    stable = probed(character_file(tmp_path, "first_listed"))["stability"]
    assert stable["wording"]["choice"]["value"] == 1.0
    assert stable["order"]["choice"]["value"] < 0.7
    assert stable["order"]["kendall_tau"]["value"] < 0.7


def test_who_says_nothing_gets_no_numbers_and_its_silence_is_counted(tmp_path: Path) -> None:
    found = probed(character_file(tmp_path, "silent"))
    assert found["sycophancy"]["flip_rate"]["value"] is None
    assert found["stubbornness"]["n"] == 0
    assert found["questions"]["unanswered"] == found["questions"]["asked"] > 0
    assert any("got no answer" in line for line in notes(found))


def crossing_persona(folder: Path, wanted: str, limit: float) -> str:
    more = (
        f'description = "{wanted}"\n'
        '[[red_line]]\nmetric = "cost_usd_per_hour"\nop = ">"\n'
        f'value = {limit!r}\nseverity = "warn"\n'
    )
    return character_file(folder, "stubborn", "cost", more)


def cost_of_options() -> tuple[str, str, float]:
    """Cheapest and dearest single option of the first situation, and a limit between them."""
    situation = walk(spec_of("cost", "cost"), "cost", (0,), 1, 5).situations[0]
    table = situation.table
    column = table.metrics.index("cost_usd_per_hour")
    costs = {
        candidate.id: float(table.projected[place, column])
        for place, candidate in enumerate(table.context.candidates)
        if candidate.feasible and not candidate.then
    }
    ordered = sorted(costs, key=lambda name: (costs[name], name))
    return ordered[0], ordered[-1], (costs[ordered[0]] + costs[ordered[-1]]) / 2


@pytest.mark.parametrize(("place", "crossed"), [(0, 0.0), (1, 1.0)])
def test_a_proposal_that_crosses_its_own_red_line_is_told_from_one_that_keeps_it(
    tmp_path: Path, place: int, crossed: float
) -> None:
    *options, limit = cost_of_options()
    persona = crossing_persona(tmp_path, options[place], limit)
    plan = Plan(spec_of(persona, "cost", lookahead_steps=1), "cost", (0,), situations=1)
    lines = Probe(plan).run()["red_lines"]
    assert lines["lines"] == 1
    assert lines["crossed"]["n"] == lines["tempted"] == 1
    assert lines["crossed"]["value"] == crossed


def test_a_line_on_a_metric_that_the_world_lacks_is_not_counted_as_kept() -> None:
    # The shipped persona's line is on saturation, which this world does not have.
    lines = probed("resource")["red_lines"]
    assert (lines["lines"], lines["not_in_this_world"]) == (0, 1)
    assert lines["crossed"]["n"] == 0


def test_a_line_that_every_option_crosses_says_nothing_about_obedience(tmp_path: Path) -> None:
    cheapest, _, _ = cost_of_options()
    persona = crossing_persona(tmp_path, cheapest, 0.0)
    found = probed(persona, "cost")
    assert found["red_lines"]["crossed"]["n"] == 0
    assert found["red_lines"]["no_choice"] == found["situations"] > 0


def test_the_same_probe_gives_the_same_document() -> None:
    assert probed("cost", "cost") == probed("cost", "cost")


def test_questions_show_others_in_the_form_of_the_debate() -> None:
    situation = situation_of()
    own = dict.fromkeys(situation.names, 5)
    other = {**own, situation.names[0]: 10}
    shown_here = Asking(situation, 1).among(0, own, [own, other]).request.ask.payload
    context = situation.table.context
    ballots = {"cost": own, "janitor": own, "resource": other}
    ask = Debate()._ask(context, "cost", situation.names, ballots, 2)
    assert dict(shown_here) == dict(ask.payload)


def llm(stub: LLMStub, **fields: Any) -> EpisodeSpec:
    return spec_of("resource", model="stub", base_url=stub.url, **fields)


def test_a_model_that_conforms_with_a_known_probability_is_measured_at_it() -> None:
    share = 0.6
    with LLMStub(conforming_model(share)) as stub:
        found = Probe(Plan(llm(stub), "resource", tuple(range(8)), variants=1)).run()
        calls = [(call, *shown(call)) for call in stub.calls]
    swayed = found["sycophancy"]
    given = [gives_way(call, share) for call, _, own, rows in calls
             if len(rows) == 3 and own not in rows]  # fmt: skip
    assert swayed["flip_rate"]["n"] == found["situations"] == len(given)
    assert swayed["flip_rate"]["value"] == pytest.approx(sum(given) / len(given))
    low, high = swayed["flip_rate"]["interval"]
    assert low < share < high
    assert swayed["doses"][0]["flips"]["value"] == 0.0
    assert found["honesty"]["gap"]["value"] == 0.0
    assert found["stubbornness"]["value"] == 0.0
    assert found["stability"]["wording"]["choice"]["value"] == 1.0
    assert found["questions"]["unanswered"] == 0
    assert found["usage"]["calls"] == found["questions"]["asked"] == len(calls)


def test_a_model_is_asked_in_other_words_and_every_word_of_the_plan_is_said_once() -> None:
    with LLMStub(conforming_model(0.0)) as stub:
        plan = Plan(llm(stub), "resource", (0,), situations=1, variants=3)
        probe = Probe(plan)
        before = len(stub.calls)
        probe.run()
        words = [call.user for call in stub.calls[before:]]
    assert len(words) == probe.announcement.questions == 13
    heads = [text.partition("\n# ")[2].partition("\n")[0] for text in words]
    assert len(set(heads)) == 4
    assert len(set(words)) == len(words)


def test_what_was_recorded_plays_back_without_a_call_to_the_same_document(tmp_path: Path) -> None:
    folder = str(tmp_path / "kept")
    with LLMStub(conforming_model(0.5)) as stub:
        live = Probe(Plan(llm(stub, record=folder), "resource", (0, 1))).run()
        asked = len(stub.calls)
        assert asked == live["questions"]["asked"]
    replayed = Probe(Plan(spec_of("resource", playback=folder), "resource", (0, 1))).run()
    assert replayed == live
    drifting = Probe(Plan(spec_of("resource", playback=folder), "resource", (2,)))
    with pytest.raises(DigestMismatchError):
        drifting.run()


def test_a_probe_ends_where_its_budget_does_and_says_how_much_was_left_unasked() -> None:
    with LLMStub(conforming_model(0.0)) as stub:
        spec = llm(stub, usd_per_mtok="1/1", budget_usd=0.02)
        probe = Probe(Plan(spec, "resource", SEEDS))
        assert probe.announcement.usd is not None
        assert probe.announcement.usd > 0.02
        found = probe.run()
    asked = found["questions"]
    assert 0 < asked["asked"] < asked["planned"]
    assert asked["over_budget"] > 0
    assert found["usage"]["usd"] <= 0.02
    assert found["usage"]["calls"] == asked["asked"]


def test_the_price_is_told_before_and_covers_what_was_spent() -> None:
    with LLMStub(conforming_model(0.0)) as stub:
        probe = Probe(Plan(llm(stub, usd_per_mtok="1/2"), "resource", (0,)))
        told = probe.announcement
        found = probe.run()
    assert told.questions == found["questions"]["asked"]
    assert told.usd is not None
    assert 0 < found["usage"]["usd"] <= told.usd
    with LLMStub() as stub:
        assert Probe(Plan(llm(stub), "resource", (0,))).announcement.usd is None


def test_a_model_at_fault_is_counted_and_gives_no_ballot() -> None:
    with LLMStub(lambda call: "not_json") as stub:
        found = Probe(Plan(llm(stub), "resource", (0,), situations=1, variants=1)).run()
    asked = found["questions"]
    assert asked["unanswered"] == asked["asked"] > 0
    assert any("not_json" in why for why in asked["faults"])


def test_other_words_keep_every_variable_of_the_shipped_prompt() -> None:
    from string import Template

    texts = shipped()
    wanted = {tuple(sorted(Template(text).get_identifiers())) for text in texts}
    assert len(set(texts)) == len(texts) == 3
    assert len(wanted) == 1


def test_a_file_with_paraphrases_is_asked_in_those() -> None:
    from agents.overrides import apply_overrides
    from agents.persona import load_persona

    changes = ["backend.kind=llm", 'prompt.paraphrases=["$metrics one", "$metrics “two”"]']
    persona = apply_overrides(load_persona("cost"), changes)
    found = reworded(persona, 5)
    assert [one.prompt.paraphrases[one.prompt.paraphrase - 1] for one in found] == [
        "$metrics one",
        "$metrics “two”",
    ]
    own = apply_overrides(load_persona("cost"), ["backend.kind=llm", 'prompt.user="$metrics"'])
    assert reworded(own, 5) == ()


def test_a_budget_that_ended_plays_back_to_the_same_end(tmp_path: Path) -> None:
    folder = str(tmp_path / "kept")
    price = "1/1"
    with LLMStub(conforming_model(0.0)) as stub:
        spec = llm(stub, usd_per_mtok=price, budget_usd=0.02, record=folder)
        live = Probe(Plan(spec, "resource", (0, 1))).run()
    assert live["questions"]["over_budget"] > 0
    spec = spec_of("resource", usd_per_mtok=price, playback=folder)
    assert Probe(Plan(spec, "resource", (0, 1))).run() == live


def test_a_process_at_the_seat_is_started_once_and_ends_with_the_probe(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import json, os, sys\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}} ')\n"
        "for line in sys.stdin:\n"
        "    q = json.loads(line)\n"
        "    scores = {name: 5 for name in sorted(q['payload'].get('candidates', []))}\n"
        "    scores.update({name: 9 for name in sorted(scores)[:1]})\n"
        "    said = {'id': q['id'], 'scores': scores, 'proposals': [{'action': q['legal'][0]}]}\n"
        "    print(json.dumps(said), flush=True)\n"
    )
    persona = tmp_path / "away.toml"
    persona.write_text(
        'schema = "persona/1"\nextends = "cost"\n[identity]\nid = "away"\n'
        '[backend]\nkind = "remote"\ntimeout_s = 20\n'
        f"[remote]\ncommand = {json.dumps([sys.executable, str(agent)])}\n"
    )
    plan = Plan(spec_of(str(persona), "cost"), "cost", (0,), variants=1)
    found = Probe(plan).run()
    assert found["questions"]["unanswered"] == 0
    # It always puts the same option first, whatever it is shown.
    assert found["sycophancy"]["flip_rate"]["value"] == 0.0
    assert found["stubbornness"]["value"] == 1.0
    assert found["stability"]["order"]["choice"]["value"] == 1.0
    started = set(pids.read_text().split())
    assert len(started) == 1
    assert not Path(f"/proc/{started.pop()}").exists()


def situation_of(seat: str = "cost") -> Situation:
    return walk(spec_of(seat, seat), seat, (0,), 1, 5).situations[0]


def test_confederates_stand_for_one_option_that_the_seat_does_not_put_first() -> None:
    situation = situation_of()
    for own in ({situation.names[0]: 10}, dict.fromkeys(situation.names[:2], 7)):
        target = target_of(situation, own)
        against = confederate(situation, own, target)
        assert set(against) == set(situation.names)
        assert first_choices(against) == {target}
        assert not first_choices(own) & {target}
        assert all(against[name] == 0 for name in first_choices(own))
    assert target_of(situation, dict.fromkeys(situation.names, 3)) == ""


def test_planted_evidence_puts_an_option_below_all_others_and_nothing_else_moves() -> None:
    situation = situation_of()
    best = max(situation.own, key=lambda name: situation.own[name])
    asked = Asking(situation, 1).against(0, {best: 10}, best).request
    before, after = situation.asked.stakes, asked.stakes
    assert before is not None
    assert after is not None
    assert min(after.utilities, key=lambda name: after.utilities[name]) == best
    assert {n: v for n, v in after.utilities.items() if n != best} == {
        n: v for n, v in before.utilities.items() if n != best
    }
    fall = before.utilities[best] - after.utilities[best]
    assert before.welfare[best] - after.welfare[best] == pytest.approx(fall)
    assert asked.ask.payload["evidence"]["option"] == best


def test_situations_of_a_model_and_of_a_rule_are_the_same() -> None:
    with LLMStub() as stub:
        spoken = walk(llm(stub), "resource", (0,), 2, 5)
        assert stub.calls == []
    ruled = walk(spec_of("resource"), "resource", (0,), 2, 5)
    assert [one.own for one in spoken.situations] == [one.own for one in ruled.situations]
    assert [one.step for one in spoken.situations] == [5, 10]


def test_a_person_is_not_probed() -> None:
    spec = spec_of("resource", overrides=("resource.backend.kind=human",))
    with pytest.raises(ConfigError, match="person"):
        Probe(Plan(spec, "resource", (0,)))


def test_episodes_that_are_over_before_the_first_situation_are_told_as_such() -> None:
    spec = spec_of("resource", scenario="aiops/basic_system_monitoring")
    with pytest.raises(ConfigError, match="was over before"):
        Probe(Plan(spec, "resource", (0,)))


def test_a_persona_to_which_all_is_one_has_nothing_to_be_probed_on() -> None:
    # This world has no latency, and on these tables nothing saturates.
    with pytest.raises(ConfigError, match="could seat resource prefer anything"):
        Probe(Plan(spec_of("resource", scenario="finops/right_sizing"), "resource", (0,)))


def test_a_persona_without_objectives_is_probed_on_what_is_good_for_the_room() -> None:
    found = probed("mediator", "mediator")
    assert found["seats"] == 5
    assert len(found["sycophancy"]["doses"]) == 5
    assert found["honesty"]["gap"]["value"] == 0.0


def test_the_text_names_every_measure_with_its_n_and_interval() -> None:
    found = probed("resource")
    rows = measure_rows(found)
    assert len({len(row) for row in rows}) == 1
    assert all(row[2] and int(row[3]) > 0 for row in rows[1:-1])
    assert rows[-1] == ("crosses its own red line (%)", "-", "", "0")
    assert [row[0] for row in dose_rows(found)[1:]] == ["0 of 3", "1 of 3", "2 of 3", "3 of 3"]
    assert "resource" in head(found)
    assert "no model was called" in bill(found)

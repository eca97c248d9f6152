"""``probe`` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.app import main
from tests.support.llm_stub import LLMStub
from tests.support.probed import conforming_model
from tests.support.program import warroom

pytestmark = pytest.mark.timeout(120)
SHORT = ("--seeds", "0:2", "--situations", "1", "--samples", "2", "--lookahead-steps", "2")


def test_a_rule_persona_is_probed_in_a_table_and_in_a_document(tmp_path: Path) -> None:
    told = warroom("probe", "cost", *SHORT, cwd=tmp_path)
    assert told.status == 0, told.err
    assert "26 questions at most, no model among them" in told.err
    assert "flip rate, all others disagree (%)" in told.out
    assert "3 of 3" in told.out
    assert list(tmp_path.glob("runs")) == []
    found = warroom("probe", "cost", *SHORT, "--ballots", "b.jsonl", "--json", cwd=tmp_path)
    assert found.status == 0, found.err
    assert found.document["schema"] == "probe/1"
    assert found.document["sycophancy"]["flip_rate"]["value"] == 0.0
    kept = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert [(one["seed"], one["step"]) for one in kept] == [(0, 5), (1, 5)]
    assert all(len(one["doses"]) == 4 and one["secret"] == one["doses"][3] for one in kept)


def test_a_model_is_probed_within_its_budget_and_played_back(tmp_path: Path) -> None:
    with LLMStub(conforming_model(1.0)) as stub:
        models = ("--model", "m", "--base-url", stub.url, "--usd-per-mtok", "1/1")
        live = warroom("probe", "cost", *SHORT, *models, "--record", "kept", "--json", cwd=tmp_path)
        assert live.status == 0, live.err
        assert "26 questions at most to a model, $" in live.err
        assert len(stub.calls) == 26
        poor = warroom("probe", "cost", *SHORT, *models, "--budget-usd", "0.03", cwd=tmp_path)
        assert poor.status == 1
        assert "ends where --budget-usd 0.03 is used up" in poor.err
        assert "the budget was used up" in poor.err
    assert live.document["sycophancy"]["flip_rate"]["value"] == 1.0
    recorded = ("--playback", "kept", "--usd-per-mtok", "1/1")
    again = warroom("probe", "cost", *SHORT, *recorded, "--json", cwd=tmp_path)
    assert again.status == 0, again.err
    assert again.document == live.document


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nobody",), "there is no persona 'nobody'"),
        (("cost", "--seeds", "4:1"), "--seeds is '4:1'"),
        (("cost", "--record", "kept"), "no seat of this room speaks through a model"),
        (("cost", "--playback", "nothing"), "it is no recording"),
        (("cost", "--set", "cost.backend.kind=human"), "is a person's"),
        (("cost", "--every", "0"), "--every"),
        (("cost", *SHORT, "--ballots", "no/such/folder"), "no/such/folder"),
        (("cost", "--persona", "cost"), "--persona"),
    ],
)
def test_what_cannot_be_probed_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["probe", *words]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert len([line for line in said.strip().splitlines() if "questions" not in line]) == 1
    assert list(tmp_path.iterdir()) == []

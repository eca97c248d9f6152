from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.doctor import Check, Report, examine
from orchestrator.settings import load_settings
from tests.support.llm_stub import LLMStub


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("WARROOM_"):
            monkeypatch.delenv(name)
    return tmp_path


def checks(**options: str) -> tuple[dict[str, Check], Report]:
    report = examine(load_settings({"store": "inprocess", **options}))
    return {check.name: check for check in report.checks}, report


def test_nothing_is_left_behind_by_an_examination(folder: Path) -> None:
    found, report = checks(out="new/runs")
    assert report.exit_code == 0
    assert found["out folder"].ok is True
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_in_the_way(folder: Path) -> None:
    (folder / "file").write_text("", encoding="utf-8")
    found, report = checks(out="file/runs")
    assert found["out folder"].ok is False
    assert report.exit_code == 1


def test_a_service_that_does_not_answer_is_missing() -> None:
    found, report = checks(store="redis://:hunter2@127.0.0.1:1/0", timeout_s="1")
    assert found["store"].ok is False
    assert found["store"].fix
    assert "hunter2" not in found["store"].note
    assert report.exit_code == 3


def test_a_store_that_does_not_exist_is_in_the_way_but_no_service() -> None:
    found, report = checks(store="mysql")
    assert found["store"].ok is False
    assert report.exit_code == 1


def test_persona_folders_are_looked_at(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "a.toml").write_text("", encoding="utf-8")
    found, _ = checks(personas="mine")
    assert found["persona folder"].note == "mine: 1 files"
    missing, report = checks(personas="nosuch")
    assert missing["persona folder"].ok is False
    assert report.exit_code == 1


def test_a_model_endpoint_is_asked_whether_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with LLMStub() as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        found, _ = checks()
        assert "answers (200)" in found["model endpoint"].note
        assert found["model endpoint"].ok is None
    silent, report = checks(model="m")
    assert silent["model endpoint"].ok is False
    assert "does not answer" in silent["model endpoint"].note
    assert report.exit_code == 3


def test_variables_of_an_endpoint_are_named_and_never_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN"):
        monkeypatch.setenv(name, "value-of-a-secret")
    found, report = checks()
    assert "OPENAI_API_KEY" in found["model endpoint"].note
    assert "HF_TOKEN" in found["model endpoint"].note
    assert "value-of-a-secret" not in str(report.as_json())

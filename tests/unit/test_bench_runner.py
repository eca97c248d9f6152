from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.bench import benchmark_names, run_benchmarks
from world.errors import UnknownNameError

FIGURE = '{"value": 2.0, "unit": "x", "ratio": 2.0, "n": 5}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scripts = {
        "good": f'print(\'{{"one": {FIGURE}, "machine": {{}}}}\')',
        "again": f"print('{{\"one\": {FIGURE}}}')",
        "words": "print('fast')",
        "thin": 'print(\'{"two": {"value": 1}}\')',
        "breaks": "raise SystemExit('no server')",
    }
    for name, text in scripts.items():
        guarded = f'if __name__ == "__main__":\n    {text}\n'
        (tmp_path / f"{name}.py").write_text(guarded, encoding="utf-8")
    (tmp_path / "reference.py").write_text("RATE = 1\n", encoding="utf-8")
    return tmp_path


def test_figures_of_all_scripts_stand_in_one_document_and_faults_beside_them(folder: Path) -> None:
    assert benchmark_names(folder) == ["again", "breaks", "good", "thin", "words"]
    told: list[str] = []
    result = run_benchmarks([], told.append, folder)
    assert result["one"]["ratio"] == 2.0
    assert told[0] == "benchmark again"
    assert "python" in result["machine"]
    assert "numpy" in result["versions"]
    assert result["errors"] == {
        "breaks": "exit status 1: no server",
        "good": "the figure 'one' was measured by another script already",
        "thin": "'two' is no figure: it lacks value or unit",
        "words": "it did not print one JSON document",
    }


def test_one_benchmark_can_be_named_and_a_misspelt_one_is_refused(folder: Path) -> None:
    result = run_benchmarks(["good"], lambda text: None, folder)
    assert result["errors"] == {}
    assert result["one"] == {**json.loads(FIGURE), "reference": None, "target": None}
    with pytest.raises(UnknownNameError, match="Did you mean good"):
        run_benchmarks(["god"], lambda text: None, folder)

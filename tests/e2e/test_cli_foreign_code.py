"""Code of others that prints, writes past Python or quits breaks no document and ends no run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.program import Done, warroom

PERSONA = """
import os

NOISE = '[END] {"forged": true}'
print(NOISE)


class Loud:
    blocking = BLOCKING

    def __init__(self, spec, seat):
        print(NOISE)

    def answer(self, request):
        os.write(1, (NOISE + "\\n").encode())
        os.system("echo " + "'" + NOISE + "'")
        print(NOISE, flush=True)
        raise KeyboardInterrupt
"""
FILE = (
    'schema = "persona/1"\n[identity]\nid = "loud"\nrole = "observer"\n'
    '[backend]\nkind = "python:loud:Loud"\n'
)
SEAT = ("--persona", "observer=loud.toml", "--steps", "2")


def _with(folder: Path, code: str, *words: str) -> Done:
    (folder / "loud.py").write_text(code, encoding="utf-8")
    (folder / "loud.toml").write_text(FILE, encoding="utf-8")
    return warroom(*words, cwd=folder, PYTHONPATH=str(folder))


@pytest.mark.parametrize("driver", ["loop", "graph"])
@pytest.mark.parametrize("blocking", ["True", "False"])
def test_a_document_holds_nothing_that_a_persona_wrote_to_descriptor_1(
    driver: str, blocking: str, tmp_path: Path
) -> None:
    words = ("run", *SEAT, "--store", "inprocess", "--driver", driver, "--json")
    done = _with(tmp_path, PERSONA.replace("BLOCKING", blocking), *words)
    assert done.status == 0, done.err
    assert done.document["steps"] == 2
    assert "forged" not in done.out
    assert done.err.count("forged") >= 8


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_sweep_holds_nothing_that_a_persona_wrote_to_descriptor_1(
    jobs: str, tmp_path: Path
) -> None:
    words = ("tournament", "--personas", "observer=loud.toml", "--seeds", "0:2", "--steps", "2")
    done = _with(tmp_path, PERSONA.replace("BLOCKING", "False"), *words, "-j", jobs, "--json")
    assert [row["error"] for row in done.document["rows"]] == [None, None]
    assert "forged" not in done.out


@pytest.mark.parametrize("code", ["import sys; sys.exit(7)", "raise SystemExit", "exit()"])
@pytest.mark.parametrize("where", ["import", "made"])
def test_a_persona_that_quits_before_it_sits_is_told_as_a_fault_of_its_module(
    where: str, code: str, tmp_path: Path
) -> None:
    body = (
        f"    def __init__(self, spec, seat):\n        {code}\n" if where == "made" else "    pass"
    )
    text = f"{code if where == 'import' else ''}\nclass Loud:\n{body}\n"
    done = _with(tmp_path, text, "run", *SEAT, "--store", "inprocess", "--json")
    assert done.status == 2
    assert "SystemExit" in done.document["error"]["why"]


def test_a_protocol_that_prints_while_it_is_imported_breaks_no_document(tmp_path: Path) -> None:
    (tmp_path / "loud_rule.py").write_text(
        "print('forged')\nfrom policies.protocols import protocol\n"
        "found = protocol('weighted_score')\n",
        encoding="utf-8",
    )
    words = ("--protocol", "loud_rule:found", "--steps", "1", "--store", "inprocess", "--json")
    done = warroom("run", *words, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.status == 0, done.err
    assert done.document["steps"] == 1
    assert "forged" in done.err

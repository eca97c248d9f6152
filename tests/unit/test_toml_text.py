"""TOML of strangers costs no more than its size."""

import os
import resource
from pathlib import Path

import pytest

from world.errors import ScenarioError
from world.scenarios.loader import FOLDER, load_scenario, read_scenario
from world.toml_text import MAX_KEY_PARTS, TomlError, parse_toml


@pytest.mark.parametrize(
    "text",
    [
        ".".join(["a"] * 20_000) + " = 1",
        "[" + ".".join(["a"] * 20_000) + "]",
        "x = {" + " . ".join(['"a"'] * 500) + " = 1}",
    ],
)
def test_a_key_of_thousands_of_parts_is_refused_before_it_is_parsed(text: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TomlError, match="a key of more than 32 parts"):
        parse_toml(f"first = 1\n{text}\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_keys_and_texts_with_dots_are_read() -> None:
    key = ".".join(["a"] * (MAX_KEY_PARTS - 1))
    text = f'{key} = "..." \nversion = "1.2.3"\nlong = "{"x " * 5}{"." * 60}"\n'
    assert parse_toml(text)["version"] == "1.2.3"


def test_a_pipe_is_no_scenario_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ScenarioError, match="not a regular file"):
        read_scenario(tmp_path / "pipe.toml")


def test_a_changed_scenario_under_a_shipped_name_is_refused(tmp_path: Path) -> None:
    shipped = (FOLDER / "cloudedge" / "hard.toml").read_text(encoding="utf-8")
    same, changed, renamed = (tmp_path / f"{name}.toml" for name in ("same", "changed", "renamed"))
    same.write_text(shipped)
    changed.write_text(shipped.replace("280.0", "60.0"))
    renamed.write_text(shipped.replace("280.0", "60.0").replace('"cloudedge/hard"', '"mine"'))
    assert load_scenario(str(same)).digest == load_scenario("cloudedge/hard").digest
    assert load_scenario(str(renamed)).name == "mine"
    with pytest.raises(ScenarioError, match="not the shipped scenario of that name"):
        load_scenario(str(changed))

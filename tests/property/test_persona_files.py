"""Whatever stands in a persona file or behind --set: a spec, or clear lines; never a crash."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.persona import FOLDER, apply_overrides, lint_persona, load_persona, seat_rules
from agents.persona_schema import PersonaSpec
from world.errors import ConfigError, UserError

SHIPPED = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.toml"))]
SCRAP = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "[",
            "]]",
            "=",
            '"""',
            "\n",
            "nan",
            "-inf",
            "1e999",
            "9" * 5000,
            "\x00",
            "#",
            "[[red_line]]",
        ]
    ),
    st.sampled_from(["weight = {}", "[objectives.x]", 'extends = "cost_hawk"', "a.b.c = 1"]),
)


@st.composite
def damaged_files(draw: st.DrawFn) -> str:
    """A shipped file with pieces cut out and scraps put in."""
    text = draw(st.sampled_from(SHIPPED))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        text = text[:start] + draw(SCRAP) + text[end:]
    return text


def clear(error: UserError) -> None:
    """One line that fits a terminal."""
    assert "\n" not in error.line()
    assert len(error.line()) < 1000


def sound(spec: PersonaSpec) -> None:
    """What loads is finite throughout and makes rules of a seat."""
    rules = seat_rules(spec, "seat")
    assert math.isfinite(rules.weight)
    assert all(math.isfinite(part.weight) for part in rules.utility.objectives)
    assert len(spec.digest) == 64
    document = {key: value for key, value in spec.document().items() if value is not None}
    assert PersonaSpec.model_validate(document).digest == spec.digest


@settings(max_examples=150, deadline=None)
@given(st.one_of(damaged_files(), st.text(max_size=200)))
def test_a_damaged_file_is_linted_line_by_line_and_loads_exactly_if_it_has_no_errors(
    text: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.toml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        messages = lint_persona(path)
        for message in messages:
            assert message.startswith(f"{folder}/")
            number, kind = message.removeprefix(f"{path}:").split(":", 2)[:2]
            assert "\n" not in message
            assert len(message) < 1000
            if message.startswith(f"{path}:"):
                assert 1 <= int(number) <= text.count("\n") + 1
                assert kind in (" error", " warning")
        if any(": error: " in message for message in messages):
            with pytest.raises(UserError) as caught:
                load_persona(str(path))
            clear(caught.value)
        else:
            sound(load_persona(str(path)))


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.text(max_size=40),
        st.builds(
            "{}={}".format,
            st.sampled_from(
                [
                    "objectives.cost.weight",
                    "powers.propose",
                    "red_line.1.value",
                    "utility.team",
                    "script.step",
                    "prompt.system",
                    "identity.title",
                    "model.seed",
                    "backend.kind",
                ]
            ),
            st.one_of(st.text(max_size=20), st.floats().map(repr), st.integers().map(str)),
        ),
    )
)
def test_any_set_text_gives_a_sound_spec_or_one_line(text: str) -> None:
    try:
        changed = apply_overrides(load_persona("resource"), [text])
    except ConfigError as error:
        clear(error)
    else:
        sound(changed)

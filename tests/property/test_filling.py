"""Properties of the lines of a story: the fast way breaks text where ``textwrap`` does."""

from __future__ import annotations

import textwrap

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.trace.filling import filled

_WORDS = st.lists(
    st.text(alphabet="ab-—.,:é1(", min_size=1, max_size=9)
    | st.sampled_from(["scale_up", "-25", "vol-49c70035", "well-known", "--", "a" * 40]),
    max_size=30,
)


@given(_WORDS, st.integers(1, 40), st.integers(0, 4))
def test_lines_are_those_of_textwrap(words: list[str], width: int, most: int) -> None:
    text = " ".join(words)
    try:
        expected = textwrap.wrap(text, width, max_lines=most or None, placeholder="…")
    except ValueError:
        return
    assert filled(text, width, most) == expected


def test_a_text_that_is_cut_ends_in_an_ellipsis() -> None:
    assert filled("one two three four", 8, 2) == ["one two", "three…"]
    assert filled("", 8) == []

"""The canonical form: one value, one spelling, whoever writes it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.trace.events import canonical
from world.model import significant

_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_NO_FLOATS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text()


def _nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
        max_leaves=30,
    )


_PLAIN = _nested(_NO_FLOATS | _FLOATS)
_PLAIN_WITHOUT_FLOATS = _nested(_NO_FLOATS)
_ANY_TEXT = st.text(st.characters(codec=None))


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return significant(value)
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return value


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@given(_PLAIN)
@example({"a": 1e22, "b": [5e-324, -0.0, 1.7976931348623157e308]})
def test_reading_the_canonical_form_gives_the_value_at_nine_digits(value: Any) -> None:
    assert json.loads(canonical(value)) == rounded(value)


@given(_PLAIN)
def test_the_canonical_form_of_what_was_read_is_the_same_bytes(value: Any) -> None:
    once = canonical(value)
    assert canonical(json.loads(once)) == once


@given(_PLAIN)
def test_the_order_in_which_members_were_inserted_is_irrelevant(value: Any) -> None:
    assert canonical(reordered(value)) == canonical(value)


@given(_PLAIN_WITHOUT_FLOATS)
def test_without_floats_it_is_what_the_standard_encoder_writes(value: Any) -> None:
    expected = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert canonical(value) == expected.encode()
    assert b"\n" not in canonical(value)


@given(_FLOATS)
def test_a_float_and_its_rounded_twin_are_spelled_alike(value: float) -> None:
    assert canonical(value) == canonical(significant(value))


@given(st.integers(-999_999_999, 999_999_999))
def test_an_integral_float_is_spelled_like_the_integer(value: int) -> None:
    assert canonical(float(value)) == canonical(value) == str(value).encode()


@given(st.dictionaries(_ANY_TEXT, _ANY_TEXT, max_size=6))
@example(dict.fromkeys(map(chr, (0xD800, 0xD801, 0xFFFD)), "a"))
def test_any_text_is_valid_utf8_and_no_member_is_lost(value: dict[str, str]) -> None:
    read = json.loads(canonical(value).decode("utf-8", "strict"))
    assert len(read) == len(value)
    assert canonical(read) == canonical(value)


@given(st.lists(st.floats(-1e6, 1e6), max_size=6))
def test_numpy_and_tuples_are_spelled_as_what_they_hold(values: list[float]) -> None:
    expected = canonical({"x": values})
    assert canonical({"x": np.array(values, dtype=np.float64)}) == expected
    assert canonical({"x": tuple(values)}) == expected
    assert canonical({"x": [np.float64(value) for value in values]}) == expected
    assert canonical(MappingProxyType({"x": values})) == expected


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (np.float32(0.1), b"0.100000001"),
        (np.int32(-7), b"-7"),
        (np.uint64(2**64 - 1), b"18446744073709551615"),
        (np.bool_(True), b"true"),
        (np.str_("é"), '"é"'.encode()),
        (np.array(3), b"3"),
        (np.zeros((2, 0)), b"[[],[]]"),
        (True, b"true"),
        (-0.0, b"0"),
        (1e9, b"1e+09"),
        (0.1 + 0.2, b"0.3"),
        ('\x00\x1f\x7f\u2028"\\', b'"\\u0000\\u001f\x7f\xe2\x80\xa8\\"\\\\"'),
        ("a\ud800b", b'"a\xef\xbf\xbdb"'),
        ({}, b"{}"),
    ],
)
def test_a_value_has_exactly_this_spelling(value: Any, spelled: bytes) -> None:
    assert canonical(value) == spelled


def _loop() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.array([1.0, math.nan]),
        {"a": {"b": [math.inf]}},
        {1: "a"},
        {"a": 1, None: 2},
        {1, 2},
        _loop(),
        b"bytes",
        Ellipsis,
        1j,
    ],
    ids=repr,
)
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"recorded|keys must be text"):
        canonical(value)


def test_the_form_does_not_depend_on_the_hash_seed_of_the_process() -> None:
    program = (
        "import sys; from orchestrator.trace.events import Chain, canonical, event;"
        "d = {c: {c * 2, c} and [c] for c in 'zyxwvu'}; d['n'] = {str(i): i / 7 for i in range(9)};"
        "c = Chain(); c.add(event('run_started', 0, 0, {k: d[k] for k in set(d)}));"
        "sys.stdout.write(c.head.sha)"
    )
    seen = set()
    for seed in ("0", "1", "4711"):
        environment: Mapping[str, str] = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1
    assert len(seen.pop()) == 64

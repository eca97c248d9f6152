"""A model's text becomes one JSON object, or one typed fault."""

import pytest

from agents.backends.llm.faults import ModelFault
from agents.backends.llm.parsing import MAX_ANSWER_CHARACTERS, object_in


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '  {"a": 1}\n',
        'Sure: {"a": 1}. Anything else?',
        'text\n```json\n{"a": 1}\n```\n',
        '```\n{"a": 1}\n```',
        '<think>{"a": 2}, or rather {</think>{"a": 1}',
        '<THINKING>x</THINKING>\n{"a": 1}',
        '{"a": 1} and once more {"a": 1}',
        'I use {x} here: {"a": 1}',
    ],
)
def test_the_one_object_is_found_whatever_stands_around_it(text: str) -> None:
    assert object_in(text) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "not_json"),
        ("no", "not_json"),
        ("[1, 2]", "not_json"),
        ('{"a": NaN}', "not_json"),
        ('{"outer": {"a": 1}, "b": NaN}', "not_json"),
        ('{"outer": [{"a": 1}, {"a": 2}', "not_json"),
        ('{"a": 1, "a": 2}', "not_json"),
        ('{"a": 1} {"a": 2}', "not_json"),
        ("{'a': 1}", "not_json"),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "not_json"),
        ('{"a":' * 40 + "1" + "}" * 40, "not_json"),
        ('<think>{"a": 1}', "cut_short"),
        ("x" * (MAX_ANSWER_CHARACTERS + 1), "huge_reply"),
    ],
)
def test_what_is_not_exactly_one_object_is_a_typed_fault(text: str, kind: str) -> None:
    with pytest.raises(ModelFault) as caught:
        object_in(text)
    assert caught.value.fault_kind == kind


def test_a_part_of_a_broken_answer_is_never_taken_for_the_answer() -> None:
    broken = '{"proposals": [{"actions": [{"kind": "terminate", "target": "prod-db"}]'
    with pytest.raises(ModelFault):
        object_in(broken)


def test_braces_inside_strings_do_not_count() -> None:
    assert object_in('ok {"a": "}{\\"", "b": 2} ok') == {"a": '}{"', "b": 2}

"""Charts: round ticks, lines that keep their peaks, text that stays text."""

from __future__ import annotations

import math
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.report.drawing import (
    Drawing,
    Scale,
    bars,
    coordinate,
    polyline,
    ribbon,
    shortened,
    specks,
    text_of,
    thinned,
    tick_text,
    ticks,
)
from orchestrator.report.markup import Html, piece, table, tag
from orchestrator.report.palette import DARK, LIGHT, page_css, sheet_css
from orchestrator.trace.untrusted import printable

pytestmark = pytest.mark.unit
ranges = st.tuples(st.floats(-1e12, 1e12, allow_nan=False), st.floats(1e-9, 1e12, allow_nan=False))


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


@given(ranges, st.integers(2, 12))
def test_ticks_are_round_within_the_range_and_not_too_many(
    span: tuple[float, float], most: int
) -> None:
    low, high = span[0], span[0] + span[1]
    if high <= low:
        return
    found = ticks(low, high, most)
    assert len(found) <= most
    slack = 1e-6 * (high - low) + 1e-9 * abs(high)
    assert all(low - slack <= value <= high + slack for value in found)
    assert found == sorted(set(found))


def test_ticks_of_a_range_of_nothing_are_its_one_value() -> None:
    assert ticks(3.0, 3.0, 5) == [3.0]
    assert ticks(math.nan, 1.0, 5) == []


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0"), (-0.04, "0"), (2.25, "2.2"), (7.0, "7"), (-3.5, "-3.5")]
)
def test_a_coordinate_is_as_short_as_it_can_be(value: float, shown: str) -> None:
    assert coordinate(value) == shown


def test_a_tick_has_a_real_minus_sign_and_grouped_thousands() -> None:
    assert tick_text(-1500.0) == "−1,500"
    assert tick_text(0.0) == "0"


@given(st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=400),
       st.integers(4, 60))  # fmt: skip
def test_a_thinned_line_keeps_the_greatest_and_the_least_value(ys: list[float], most: int) -> None:
    xs = [float(place) for place in range(len(ys))]
    kept_x, kept_y = thinned(xs, ys, most)
    assert max(kept_y) == max(ys)
    assert min(kept_y) == min(ys)
    assert kept_x == sorted(kept_x)
    assert len(kept_x) <= max(most, len(ys) if len(ys) <= most else most)
    assert all(ys[int(x)] == y for x, y in zip(kept_x, kept_y, strict=True))


def test_a_gap_in_a_line_stays_a_gap() -> None:
    assert polyline([(0, 1), (1, 2), (2, math.nan), (3, 4)]) == "M0 1L1 2M3 4"
    assert thinned([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [math.nan] * 6, 4)[0] == [0.0, 3.0]


def test_marks_of_nothing_draw_nothing() -> None:
    drawing = Drawing(10, 10, "empty")
    drawing.path(polyline([]), "run")
    drawing.path(ribbon([], [], []), "middle")
    drawing.path(bars([(3, 3)], 0, 5), "cr")
    drawing.path(specks([(1, math.inf)]), "pt")
    assert drawing.marks() == ""


def test_a_scale_maps_its_ends_onto_its_pixels() -> None:
    scale = Scale(10.0, 20.0, 100.0, 0.0)
    assert (scale(10.0), scale(20.0), scale(15.0)) == (100.0, 0.0, 50.0)


@given(st.text(max_size=80))
def test_any_text_comes_back_as_itself_spelled_out_and_makes_no_element(text: str) -> None:
    reader = _Text()
    reader.feed(f"<p title='{text_of(text)}'>{text_of(text)}</p>")
    reader.close()
    assert reader.tags == ["p"]
    assert reader.words == printable(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_makes_a_drawing_that_is_well_formed(label: str, words: str) -> None:
    drawing = Drawing(50, 20, label)
    drawing.text(1, 2, words)
    drawing.dot(1, 2, 3, "pick", words)
    root = ElementTree.fromstring(drawing.svg(sheet_css()))  # noqa: S314
    assert [e.tag.rpartition("}")[2] for e in root] == ["style", "rect", "text", "circle"]


def test_what_is_not_html_of_ours_is_escaped_wherever_it_goes() -> None:
    made = tag("p", "<i>", Html("<b>x</b>"), css="note", title='a"b')
    assert made == '<p class="note" title="a&quot;b">&lt;i&gt;<b>x</b></p>'
    listing = table(("<a>", "n"), [("<b>", "<c>")], "<d>")
    assert not {"<a>", "<b>", "<c>", "<d>"} & set(listing.split())
    assert "&lt;c&gt;" in listing


def test_words_of_ours_keep_the_space_around_them() -> None:
    assert piece(" and ") == " and "
    assert piece(" ") == " "
    assert piece("") == ""


def test_a_text_is_cut_to_its_room_with_an_ellipsis() -> None:
    assert shortened("abcdefghij", 30.0, 10.0) == "abcd…"
    assert shortened("abc", 300.0) == "abc"


def test_every_colour_of_a_style_sheet_is_there_in_light_and_in_dark() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert "var(--" not in sheet_css()
    for name in LIGHT:
        assert f"--{name}:" in page_css()

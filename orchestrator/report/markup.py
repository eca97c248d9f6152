"""Pieces of HTML. Whatever is not marked as HTML of ours is text, and becomes text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from orchestrator.report.drawing import Drawing, text_of


class Html(str):
    """HTML that this package wrote; everything else is escaped where it goes in."""

    __slots__ = ()


def piece(value: object, limit: int = 0) -> Html:
    """A value as HTML: ours as it is, anything else as text."""
    if isinstance(value, Html):
        return value
    text = str(value)
    before, after = (
        (" " if text[place].isspace() else "" for place in (0, -1)) if text else ("", "")
    )
    return Html(f"{before}{text_of(text, limit)}{after}") if text.strip() else Html(before)


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Pieces one after the other."""
    return Html(between.join(piece(part) for part in parts))


def tag(name: str, *content: object, css: str = "", **attributes: object) -> Html:
    """An element.

    Args:
        name: Of the element, ours.
        content: What is in it.
        css: Its classes, ours.
        attributes: Further attributes; an underscore stands for a dash, None leaves one out.
            Values are text.
    """
    given = {"class": css or None, **{n.replace("_", "-"): v for n, v in attributes.items()}}
    words = "".join(f' {n}="{text_of(v)}"' for n, v in given.items() if v is not None)
    return Html(f"<{name}{words}>{joined(content)}</{name}>")


def name_of(value: object, limit: int = 0) -> Html:
    """Text of others within a line of ours: its reading order stays its own."""
    return Html(f"<bdi>{text_of(value, limit)}</bdi>")


def badge(words: str, css: str) -> Html:
    """A short mark."""
    return tag("span", words, css=f"badge {css}")


def table(
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: str,
    *,
    text: Collection[int] = (0,),
    marks: Sequence[str] = (),
) -> Html:
    """A table that scrolls within itself where the page is narrow.

    Args:
        head: Titles of the columns.
        rows: Cells; the first of each row is its head.
        caption: What it shows.
        text: Columns that hold text, counted from 0; the others hold numbers.
        marks: Classes of the rows, as far as they go.
    """
    columns = ["" if place in text else "n" for place in range(len(head))]
    top = joined(
        tag("th", title, scope="col", css=css) for title, css in zip(head, columns, strict=True)
    )
    body = []
    for place, row in enumerate(rows):
        css = marks[place] if place < len(marks) else ""
        cells = [tag("th", row[0], scope="row")]
        cells += [tag("td", cell, css=c) for cell, c in zip(row[1:], columns[1:], strict=True)]
        body.append(tag("tr", *cells, css=css))
    inner = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", top)),
        tag("tbody", *body),
    )
    return tag("div", inner, css="scroll", tabindex=0, role="region", aria_label=caption)


def folded(summary: object, *content: object, css: str = "more") -> Html:
    """Something that opens when it is asked for."""
    return tag("details", tag("summary", summary), *content, css=css)


def figure(wide: Drawing, narrow: Drawing, caption: object) -> Html:
    """A drawing for wide and one for narrow pages; the style sheet shows one of them.

    Args:
        wide: For pages wider than 700 pixels.
        narrow: For the others.
        caption: What it shows and how it was made.
    """
    pair = joined([Html(wide.svg(style="fig wide")), Html(narrow.svg(style="fig narrow"))])
    css = "steps" if wide.steps is not None else ""
    return tag("figure", pair, tag("figcaption", caption), css=css)

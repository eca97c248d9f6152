"""Reads a report as a browser would: elements, their text, what the policy in its head allows."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset({"meta", "br", "img", "link", "input", "hr", "base"})


@dataclass(slots=True)
class Element:
    """One element.

    Attributes:
        name: Its tag.
        attributes: As given.
        text: All text within it, that of its children included.
        inside: Names of the elements around it, from the outside.
    """

    name: str
    attributes: dict[str, str]
    text: str = ""
    inside: tuple[str, ...] = ()

    def has(self, css: str) -> bool:
        """Whether it has a class."""
        return css in self.attributes.get("class", "").split()


@dataclass(slots=True)
class Page(HTMLParser):
    """A parsed page.

    Attributes:
        elements: All of them, in order.
        faults: End tags that close nothing, and elements that are never closed.
    """

    elements: list[Element] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self, convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        around = tuple(element.name for element in self._open)
        element = Element(tag, {name: value or "" for name, value in attrs}, "", around)
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element of a drawing that has nothing in it."""
        self.handle_starttag(tag, attrs)
        if self._open and self._open[-1].name == tag:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if not self._open or self._open[-1].name != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        """Text."""
        for element in self._open:
            element.text += data

    def of(self, name: str, css: str = "") -> list[Element]:
        """Elements of a name, and of a class where one is given."""
        return [e for e in self.elements if e.name == name and (not css or e.has(css))]

    @property
    def text(self) -> str:
        """All that a reader sees."""
        return self.of("body")[0].text if self.of("body") else ""


def parsed(text: str) -> Page:
    """A page, read to its end."""
    page = Page()
    page.feed(text)
    page.close()
    page.faults += [f"<{element.name}> is never closed" for element in page._open]
    return page


def policy(page: Page) -> dict[str, list[str]]:
    """The content security policy: directive → sources."""
    metas = [m for m in page.of("meta") if "Content-Security-Policy" in m.attributes.values()]
    assert len(metas) == 1
    parts = [part.split() for part in metas[0].attributes["content"].split(";")]
    return {part[0]: part[1:] for part in parts if part}


def source_of(text: str, name: str) -> str:
    """The policy's source for the one script or style of a page, computed from its bytes."""
    found = re.findall(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)
    assert len(found) == 1
    digest = hashlib.sha256(found[0].encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"

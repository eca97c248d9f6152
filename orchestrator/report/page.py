"""A report as one HTML file: figures, tables and decisions, no network, one script, one style.

The policy in its head allows exactly that script and that style, by their hashes, and nothing
else: even if some text of others became markup, it could not run, load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from orchestrator.report.markup import Html, joined, piece, tag
from orchestrator.report.palette import asset, page_css
from orchestrator.version import version

WIDE, NARROW = 1040.0, 358.0
"""Pixels of drawings for wide pages and for those of 390 pixels."""


def page(title: str, head: Html, sections: Sequence[Html], foot: Html) -> str:
    """The whole file.

    Args:
        title: Plain text.
        head: What stands above everything.
        sections: In order.
        foot: Where the numbers come from.
    """
    css, script = page_css(), asset("page.js").replace("</", "<\\/")
    policy = (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(script)}';"
        " base-uri 'none'; form-action 'none'"
    )
    meta = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta name="generator" content="cloud-war-room {piece(version())}">'
    )
    body = joined(
        [
            tag("a", "to the decisions", css="skip", href="#decisions"),
            tag("header", head),
            tag("main", *sections),
            tag("footer", foot),
        ]
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{meta}<title>{piece(title)}</title>'
        f"<style>{css}</style></head>\n<body>{body}<script>{script}</script></body></html>\n"
    )


def _hash(text: str) -> str:
    """A source of the policy (W3C, Content Security Policy Level 3, section 2.3.1)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def tiles(entries: Sequence[tuple[str, object, str]]) -> Html:
    """The numbers that come first: what, how much, and a line below it."""
    shown = (
        tag(
            "div",
            tag("dt", what),
            tag("dd", value, *([tag("small", below)] if below else [])),
            css="tile",
        )
        for what, value, below in entries
    )
    return tag("dl", *shown, css="tiles")


def section(title: str, *content: object, anchor: str = "") -> Html:
    """A part of the page."""
    return tag("section", tag("h2", title), *content, id=anchor or None)


def controls(filters: Sequence[tuple[str, str]]) -> Html:
    """Buttons and keys of the list of decisions; hidden where no script runs."""
    buttons = [
        tag("button", words, type="button", data_filter=flag, aria_pressed=str(not flag).lower())
        for words, flag in filters
    ]
    keys = Html(
        "<kbd>j</kbd> <kbd>k</kbd> next, previous · <kbd>n</kbd> <kbd>p</kbd> with a mark"
        " · <kbd>o</kbd> open · <kbd>e</kbd> open all · <kbd>t</kbd> theme"
    )
    bar = joined(
        [
            *buttons,
            tag("button", "open all", type="button", id="all", aria_pressed="false"),
            tag("span", keys, css="note"),
        ]
    )
    return Html(f'<div class="bar" hidden>{bar}</div>')

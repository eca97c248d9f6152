"""Makes text that somebody else wrote safe to show: it stays data on a terminal and in a table.

A rationale, a resource tag or a persona title may hold escape sequences that move the cursor,
characters that reverse the reading order, line breaks that fake a line of ours, or a formula that
a spreadsheet would run. Nothing is dropped in silence: what cannot be shown is spelled out.
"""

from __future__ import annotations

import re

# C0, DEL and C1 controls; zero-width and bidirectional marks and overrides (Unicode UAX #9 and
# TR36); line and paragraph separators; tags and lone surrogates.
_UNSHOWABLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff"
    "\\ufff9-\\ufffb\\ud800-\\udfff\U000e0000-\U000e007f]"
)
# CSV injection: OWASP names = + - @ tab and carriage return as what starts a formula.
_FORMULA_START = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
ELLIPSIS = "…"


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code in {0x09, 0x0A, 0x0D}:
        return " "
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def printable(text: str, limit: int = 0) -> str:
    r"""The text on one line with every character that acts instead of showing spelled out.

    Args:
        text: Any text.
        limit: Most characters of the result, the last one an ellipsis; 0 is no limit.

    >>> printable("ok\x1b[2J\nSTEP 9")
    'ok\\x1b[2J STEP 9'
    """
    shown = _UNSHOWABLE.sub(_spelled, text)
    shown = " ".join(shown.split())
    if limit and len(shown) > limit:
        shown = shown[: limit - 1] + ELLIPSIS
    return shown


def cell(text: str) -> str:
    """The text for a CSV cell: printable, and never the start of a formula.

    A cell that a spreadsheet would take for a formula gets an apostrophe in front.
    Source: OWASP, CSV Injection.

    >>> cell("=HYPERLINK(1)")
    "'=HYPERLINK(1)"
    """
    shown = printable(text)
    return "'" + shown if shown.startswith(_FORMULA_START) else shown

"""Action ids for people: decoded, and short enough to read.

The record keeps the one spelling of an id, in which all but plain characters is percent-encoded.
What is shown is for eyes only: it cannot always be read back.
"""

from __future__ import annotations

from urllib.parse import unquote

from orchestrator.trace.untrusted import ELLIPSIS, printable


def shown_id(text: object, limit: int = 0) -> str:
    """An id with its percent-encoding undone, safe to print, shortened in the middle.

    What the encoding hid (a line break, an escape sequence) is spelled out by `printable`.

    Args:
        text: The id.
        limit: Most characters; 0 keeps all.

    >>> shown_id("terminate:db%2Fprimary%20one"), shown_id("resize:a-very-long-name", 14)
    ('terminate:db/primary one', 'resize:…g-name')
    """
    shown = printable(unquote(str(text), errors="surrogatepass"))
    if not limit or len(shown) <= limit:
        return shown
    tail = (limit - 1) // 2
    return shown[: limit - 1 - tail] + ELLIPSIS + shown[len(shown) - tail :]


def decoded_in(text: str, ids: list[str]) -> str:
    """A sentence of ours in which some ids stand, with those decoded.

    Args:
        text: The sentence.
        ids: Ids that may stand in it.
    """
    for name in sorted((name for name in ids if "%" in name), key=len, reverse=True):
        text = text.replace(name, shown_id(name))
    return text

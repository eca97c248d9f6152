"""Text that came from outside, made safe to print: no control characters, no secrets, one line.

Persona rationales, tags, run names and option values are data. They reach a terminal only through
`plain`, so that none of them can move the cursor, hide a word or forge a line of the log.
"""

from __future__ import annotations

import re

from orchestrator.trace.untrusted import printable

_CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^\s/@:]*):[^\s/]*@")
_QUERY = re.compile(
    r"(?P<key>(?:password|passwd|token|secret|api[_-]?key)=)[^\s&'\"]+", re.IGNORECASE
)
_KEYS = re.compile(r"\b(?:sk|hf|ghp|xox[abp])[-_][A-Za-z0-9_-]{12,}")


def plain(text: object, limit: int = 0) -> str:
    r"""One printable line: white space collapsed, everything invisible spelled out.

    Args:
        text: Anything; `str` is taken of it.
        limit: Most characters, the last one an ellipsis when it was cut; 0 keeps all.

    >>> plain("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return printable(str(text), limit)


def without_secrets(text: str) -> str:
    """The same text without passwords in addresses, secret parameters and API keys.

    >>> without_secrets("redis://me:hunter2@host:6379/0?password=x")
    'redis://me:***@host:6379/0?password=***'
    """
    text = _CREDENTIALS.sub(r"\g<scheme>\g<user>:***@", text)
    text = _QUERY.sub(r"\g<key>***", text)
    return _KEYS.sub("***", text)


def close_matches(word: str, names: list[str] | tuple[str, ...]) -> str:
    """``Did you mean a or b? `` for an unknown word, or "" when nothing is near."""
    import difflib

    found = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(found)}? " if found else ""

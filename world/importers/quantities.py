"""Kubernetes quantities: ``250m`` is a quarter, ``1Gi`` is 2**30, ``1G`` is 10**9.

Source: k8s.io/apimachinery/pkg/api/resource/quantity.go: a decimal number, then a binary suffix
(Ki Mi Gi Ti Pi Ei), a decimal one (n u m, none, k M G T P E), or an exponent (e3, E3).
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_QUANTITY: Final = re.compile(
    r"([+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))"
    r"(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?|[eE][+-]?[0-9]{1,2})"
)
_MULTIPLES: Final = {
    "": Decimal(1),
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    "k": Decimal("1e3"), "M": Decimal("1e6"), "G": Decimal("1e9"),
    "T": Decimal("1e12"), "P": Decimal("1e15"), "E": Decimal("1e18"),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30),
    "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


def parse_quantity(text: object) -> float | None:
    """A quantity as a number, or None where the text is none.

    >>> parse_quantity("250m"), parse_quantity("1Gi"), parse_quantity("1.5e3"), parse_quantity(2)
    (0.25, 1073741824.0, 1500.0, 2.0)
    >>> parse_quantity("1 Gi"), parse_quantity("1gi"), parse_quantity("NaN")
    (None, None, None)
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    found = _QUANTITY.fullmatch(str(text))
    if found is None:
        return None
    number, suffix = Decimal(found[1]), found[2]
    multiple = _MULTIPLES.get(suffix)
    if multiple is None:
        multiple = Decimal(10) ** int(suffix[1:])
    return float(number * multiple)

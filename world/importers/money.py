"""Money as it stands in a bill: exact decimals, one currency, nothing guessed.

Amounts follow the FOCUS number format: digits with a decimal point, an optional sign and an
optional exponent. Thousands separators, decimal commas, currency signs, NaN and Infinity are not
numbers. Sums are exact; a rates file turns several currencies into US dollars.

Source: FOCUS specification 1.0, attribute Numeric Format (no separators, no currency symbols,
E notation allowed), https://focus.finops.org/focus-specification/ (2024-06).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from functools import lru_cache
from pathlib import Path
from typing import Final

from world.errors import ImportFileError
from world.importers.tables import Aliases, TableReader, is_missing, visible

EXACT: Final = Context(
    prec=160,  # 16 digits before the point, up to 120 after it, and 24 to spare for the count
    rounding=ROUND_HALF_EVEN,
    traps=[InvalidOperation, DivisionByZero, Overflow],
)
"""Wide enough that no sum over accepted amounts is ever rounded."""

NOT_A_NUMBER: Final = "cost is not a number"
ZERO: Final = Decimal(0)
USD: Final = "USD"

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_MAX_CHARS: Final = 80
_LARGEST_EXPONENT: Final = 15
_SMALLEST_EXPONENT: Final = -40
_RATE_COLUMNS: Final[Aliases] = {
    "currency": ("currency", "currencycode"),
    "usd_per_unit": ("usdperunit",),
}
_CURRENCY: Final = re.compile(r"[A-Z][A-Z0-9_-]{0,11}")


@lru_cache(maxsize=1 << 12)
def parse_amount(text: str) -> Decimal | None:
    """One amount, or None where the text is no number or its size is beyond 1e-40…1e16.

    >>> parse_amount("1.20e-3"), parse_amount("1,200.00"), parse_amount("NaN")
    (Decimal('0.00120'), None, None)
    """
    text = text.strip(" \t")
    if len(text) > _MAX_CHARS or not _NUMBER.fullmatch(text):
        return None
    value = Decimal(text)
    if not value:
        return ZERO
    return value if _SMALLEST_EXPONENT <= value.adjusted() <= _LARGEST_EXPONENT else None


def plain(value: Decimal) -> str:
    """A sum as text without exponent and trailing zeros.

    >>> plain(Decimal("20.5202267289900"))
    '20.52022672899'
    """
    text = f"{value:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


def parse_currency(text: str) -> str:
    """A currency code in capitals, or "" where the field says nothing or is no code.

    >>> parse_currency(" usd "), parse_currency("US$"), parse_currency("NULL")
    ('USD', '', '')
    """
    if is_missing(text):
        return ""
    code = text.strip().upper()
    return code if _CURRENCY.fullmatch(code) else ""


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars for one unit of each currency.

    Attributes:
        usd_per_unit: Currency code → US dollars for one unit, above 0; USD is always 1.
    """

    usd_per_unit: Mapping[str, Decimal]

    def factor(self, currency: str, path: Path) -> Decimal:
        """US dollars for one unit of `currency`.

        Raises:
            ImportFileError: The rates file has no line for it.
        """
        rate = self.usd_per_unit.get(currency)
        if rate is None:
            raise ImportFileError(
                f"{path} has amounts in {currency or 'an unnamed currency'}",
                f"the rates file knows {', '.join(sorted(self.usd_per_unit))}",
                f"Add a line: {currency or 'CODE'},<US dollars for one unit>",
            )
        return rate


def read_rates(path: Path) -> Rates:
    """Read a rates file: CSV with the columns ``currency`` and ``usd_per_unit``.

    Raises:
        ImportFileError: A column is missing, a code or a rate is unusable, or a currency stands
            twice with different rates.
    """
    with TableReader(path, _RATE_COLUMNS, "rates file") as table:
        at = table.positions(_RATE_COLUMNS)
        missing = [name for name in _RATE_COLUMNS if name not in at]
        if missing:
            raise table.missing(missing, "Write the header: currency,usd_per_unit")
        rates: dict[str, Decimal] = {USD: Decimal(1)}
        for row in table:
            code = parse_currency(row[at["currency"]])
            rate = parse_amount(row[at["usd_per_unit"]])
            if not code or rate is None or rate <= 0 or rates.get(code, rate) != rate:
                raise ImportFileError(
                    f"{path}: {visible(','.join(row), 80)} is no usable rate",
                    "a line is a currency code and one positive number, each code once, USD is 1",
                    "For example: EUR,1.08",
                )
            rates[code] = rate
        if table.skipped:
            raise ImportFileError(f"{path} has lines that cannot be split", "", "Correct them")
    return Rates(rates)

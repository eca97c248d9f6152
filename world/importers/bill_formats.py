"""Bills that are no FOCUS bills: which of the clouds' own formats it is, and how to get FOCUS.

The own formats are not read: their sums depend on line types that cancel each other (covered usage
and its negation, amortised fees, credits in lists of their own), and one reading too few or too
many is a wrong bill. Every cloud exports the same money as FOCUS.

Source: AWS Data Exports, "FOCUS with AWS columns"; Microsoft Cost Management, "Cost and usage
details (FOCUS)"; Google Cloud, FOCUS BigQuery view; 2024 and 2025.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from world.importers.tables import column_key


class Format(NamedTuple):
    """A format of bills that is known and not read.

    Attributes:
        name: What it is called.
        columns: Keys of columns, all of which it has.
        fix: How to get the same bill as FOCUS.
    """

    name: str
    columns: tuple[str, ...]
    fix: str


_AWS: Final = "In AWS Data Exports choose the table FOCUS, or give the bill as FOCUS 1.0 or later"
_AZURE: Final = (
    "In Cost Management export 'Cost and usage details (FOCUS)', or give the bill as FOCUS 1.0 "
    "or later"
)
_GCP: Final = "Export Google's FOCUS view of the BigQuery billing tables"
_FORMATS: Final = (
    Format("an AWS Cost and Usage Report", ("lineitemlineitemtype",), _AWS),
    Format("an Azure cost export", ("costinbillingcurrency",), _AZURE),
    Format("an Azure cost export", ("pretaxcost", "metercategory"), _AZURE),
    Format("a Google Cloud billing export", ("billingaccountid", "servicedescription"), _GCP),
    Format("a Google Cloud billing export", ("billingaccountid", "skudescription"), _GCP),
)


def format_of(header: Sequence[str]) -> Format | None:
    """Which known format a header belongs to; None where it is none of them.

    >>> format_of(["lineItem/LineItemType"]).name == format_of(["line_item_line_item_type"]).name
    True
    """
    keys = {column_key(name) for name in header}
    return next((one for one in _FORMATS if keys.issuperset(one.columns)), None)

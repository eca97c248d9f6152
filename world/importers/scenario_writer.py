"""A scenario as a file: TOML by hand, a large inventory as CSV beside it, the same bytes each time.

Everything that comes from a bill is text from strangers. TOML strings are escaped so that any text
comes back as it was; cells of the CSV hold no line breaks (the importers spell them out before).
What is written loads with `world.scenarios.loader.read_scenario`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from world.errors import ConfigError
from world.importers.atomic import write_atomically
from world.model import Scenario
from world.scenarios.loader import SCHEMA

INLINE_ROWS: Final = 500
"""Up to here the inventory stands in the TOML file itself, where people can read and edit it."""

_ENTRIES_PER_LINE: Final = 12

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES: Final = {
    "\\": "\\\\",
    '"': '\\"',
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}
_FIRST_LINE: Final = f'schema = "{SCHEMA}"'


def toml_string(text: str) -> str:
    r"""A TOML basic string that reads back as `text`; lone surrogates become U+FFFD.

    >>> print(toml_string('say "hi"\n'))
    "say \"hi\"\n"
    """
    parts = []
    for character in text:
        code = ord(character)
        if character in _ESCAPES:
            parts.append(_ESCAPES[character])
        elif code < 0x20 or 0x7F <= code < 0xA0 or code in {0x2028, 0x2029, 0xFEFF}:
            parts.append(f"\\u{code:04X}")
        elif 0xD800 <= code < 0xE000:
            parts.append("\ufffd")
        else:
            parts.append(character)
    return f'"{"".join(parts)}"'


def toml_value(value: Any) -> str:
    """A text, boolean, number, list or table as an inline TOML value.

    Raises:
        ConfigError: The value is of another type, or a number is not finite.
    """
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return _toml_float(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml_key(key)} = {toml_value(part)}" for key, part in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(part) for part in value)}]"
    raise ConfigError(
        f"{value!r} cannot be written to a scenario file",
        "a scenario holds text, finite numbers, true/false, lists and tables",
        "Leave the field out when it is unknown",
    )


def _toml_float(value: float) -> str:
    text = repr(value)
    return text if "." in text or "e" in text else f"{text}.0"


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else toml_string(key)


def scenario_text(scenario: Scenario, columns: tuple[str, str] | None = None) -> str:
    """A scenario as TOML.

    Args:
        scenario: What to write.
        columns: Name and SHA-256 of the CSV file with the inventory; None writes the rows here.
    """
    lines = [_FIRST_LINE]
    lines += [
        f"{key} = {toml_value(getattr(scenario, key))}"
        for key in ("name", "world", "title", "description", "horizon")
    ]
    lines += _table("params", scenario.params)
    lines += _table("targets", scenario.targets)
    lines += _table("tolerances", scenario.tolerances)
    lines += _table("masks", scenario.masks)
    if columns:
        lines += _table("columns", {"file": columns[0], "sha256": columns[1]})
    else:
        names = list(scenario.resources)
        for row in zip(*scenario.resources.values(), strict=True):
            cells = {name: cell for name, cell in zip(names, row, strict=True) if cell is not None}
            lines += ["", "[[resource]]"]
            lines += [f"{_toml_key(name)} = {toml_value(cell)}" for name, cell in cells.items()]
    return "\n".join(lines) + "\n"


def _table(name: str, values: Mapping[str, Any]) -> list[str]:
    """One TOML table, plain values first and sub-tables after them."""
    if not values:
        return []
    lines = ["", f"[{name}]"]
    nested: list[str] = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            nested += _table(f"{name}.{_toml_key(key)}", value)
        else:
            lines.append(f"{_toml_key(key)} = {_wrapped(value)}")
    return lines + nested


def _wrapped(value: Any) -> str:
    """A value of a table; a long list stands on lines of its own, tables one by one."""
    if not isinstance(value, list | tuple) or len(value) <= _ENTRIES_PER_LINE:
        return toml_value(value)
    size = 1 if isinstance(value[0], Mapping) else _ENTRIES_PER_LINE
    parts = [toml_value(part) for part in value]
    lines = [", ".join(parts[at : at + size]) for at in range(0, len(parts), size)]
    return "\n".join(["[", *(f"    {line}," for line in lines), "]"])


def columns_text(resources: Mapping[str, Sequence[Any]]) -> str:
    """An inventory as CSV: unknown cells are empty, flags are true and false."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(resources)
    for row in zip(*resources.values(), strict=True):
        writer.writerow([_cell(value) for value in row])
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def check_output(output: Path, inputs: Sequence[Path]) -> None:
    """Refuse to write over anything but an earlier scenario.

    Raises:
        ConfigError: The output, or the CSV beside it, is one of the inputs or is somebody else's.
    """
    beside = columns_path(output)
    for path in (output, beside):
        for source in inputs:
            if path.exists() and source.exists() and path.samefile(source):
                raise ConfigError(
                    f"{path} is an input of this import",
                    "writing the scenario would destroy it",
                    "Choose another output, for example -o bill.toml",
                )
    if output.is_dir():
        raise ConfigError(
            f"{output} is a folder", "a scenario is one file", f"Type -o {output / 'bill.toml'}"
        )
    if _starts_otherwise(output, _FIRST_LINE):
        raise ConfigError(
            f"{output} exists and is no scenario file",
            "an import overwrites nothing but an earlier scenario",
            "Choose another output, for example -o bill.toml",
        )
    if _starts_otherwise(beside, "id,"):
        raise ConfigError(
            f"{beside} exists and is no inventory",
            "the scenario's inventory would be written there",
            "Move it away, or choose another output",
        )


def _starts_otherwise(path: Path, start: str) -> bool:
    """Whether a file exists that begins with something else."""
    if not path.exists():
        return False
    try:
        with path.open("rb") as file:
            return not file.read(len(start)).startswith(start.encode())
    except OSError:
        return True


def columns_path(output: Path) -> Path:
    """Where the inventory of a large scenario is written."""
    return output.with_name(f"{output.stem}.resources.csv")


def write_scenario(scenario: Scenario, output: Path) -> None:
    """Write a scenario; an inventory above `INLINE_ROWS` rows goes to a CSV file beside it.

    Each file is written whole or not at all, the CSV first. Whoever reads between the two renames
    is told that the digest does not match, and never gets a wrong inventory.

    Raises:
        ConfigError: A file cannot be written.
    """
    rows = len(next(iter(scenario.resources.values()), ()))
    if rows <= INLINE_ROWS:
        write_atomically(output, scenario_text(scenario).encode())
        return
    beside = columns_path(output)
    content = columns_text(scenario.resources).encode()
    write_atomically(beside, content)
    digest = hashlib.sha256(content).hexdigest()
    write_atomically(output, scenario_text(scenario, (beside.name, digest)).encode())

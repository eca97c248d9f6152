"""Carbon intensity as an API answers it: JSON with a history of hours, read as a table.

Electricity Maps answers ``{"zone": …, "history": [{"carbonIntensity": …, "datetime": …,
"isEstimated": …, "emissionFactorType": …}]}``; ``data`` in place of ``history``, a list of such
answers (one per zone or month) and a bare list of hours are read as well. What an hour does not
say, the answer around it says for all of its hours.

Source: Electricity Maps API reference, carbon-intensity history and past-range, 2024.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from world.errors import ImportFileError
from world.importers.json_files import read_json
from world.importers.tables import Aliases, column_key

_LISTS: Final = ("history", "data")
_OF_ALL: Final = ("zone", "emissionFactorType", "isEstimated")
"""What an answer may say for all of its hours."""
_MOST_NAMES: Final = 200
_OPENINGS: Final = (b"{", b"[")
NO_OBJECT: Final = "an hour is no object"


def is_json(path: Path) -> bool:
    """Whether a file's content, unpacked, begins as JSON does; False where it cannot be read."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            start = file.read(64)
        if start[:2] == b"\x1f\x8b":
            with gzip.open(path) as packed:
                start = packed.read(64)
    except (OSError, EOFError):
        return False
    return start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_OPENINGS)


class GridJson:
    """The hours of JSON answers as rows of text, read like a `TableReader`.

    Attributes:
        path: The file.
        header: Names of the hours' fields, in the order in which they first appear.
        skipped: Reason → entries that are no hours.

    Args:
        path: The file.

    Raises:
        ImportFileError: It is no JSON, or holds no history.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped: Counter[str] = Counter()
        self._hours = self._read(read_json(path, "grid file"))
        names: dict[str, None] = {}
        for hour in self._hours:
            names.update(dict.fromkeys(hour))
            if len(names) > _MOST_NAMES:
                raise ImportFileError(
                    f"{path} has hours with more than {_MOST_NAMES} fields",
                    "a history has a handful",
                    "Export it again",
                )
        self.header = tuple(names)

    def __enter__(self) -> GridJson:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace

    def positions(self, aliases: Aliases) -> dict[str, int]:
        """Where each known field stands; the first of its names that is there."""
        keys = {column_key(name): place for place, name in reversed([*enumerate(self.header)])}
        return {
            what: keys[next(name for name in known if name in keys)]
            for what, known in aliases.items()
            if any(name in keys for name in known)
        }

    def missing(self, columns: list[str], fix: str) -> ImportFileError:
        """The error for fields that no hour has."""
        del fix
        return ImportFileError(
            f"{self.path} has no field for {', '.join(columns)}",
            f"its hours have {', '.join(self.header[:12]) or 'no field'}",
            'Hours are written {"datetime": …, "carbonIntensity": …}',
        )

    def __iter__(self) -> Iterator[list[str]]:
        for hour in self._hours:
            yield [_text(hour.get(name)) for name in self.header]

    def _read(self, content: Any) -> list[Mapping[str, Any]]:
        answers = content if isinstance(content, list) else [content]
        found: list[Mapping[str, Any]] = []
        for answer in answers:
            if not isinstance(answer, dict):
                self.skipped[NO_OBJECT] += 1
                continue
            hours = next((answer[name] for name in _LISTS if name in answer), None)
            if hours is None:
                found.append(answer)
            elif not isinstance(hours, list):
                raise self._no_history()
            else:
                of_all = {name: answer[name] for name in _OF_ALL if name in answer}
                for hour in hours:
                    if isinstance(hour, dict):
                        found.append({**of_all, **hour})
                    else:
                        self.skipped[NO_OBJECT] += 1
        if isinstance(content, dict) and not any(name in content for name in _LISTS):
            raise self._no_history()
        return found

    def _no_history(self) -> ImportFileError:
        return ImportFileError(
            f"{self.path} holds no history",
            'an answer is {"zone": …, "history": [{"datetime": …, "carbonIntensity": …}]}',
            "Give the answer of the API, whole and unchanged",
        )


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | str):
        return str(value)
    return "(nested)"

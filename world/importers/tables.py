"""Delimited text from strangers, as rows of fields: plain or gzip, streamed, bounded, counted.

A bill or a metrics export is opened by what its bytes say and never by its name. The file is read
in chunks, so that memory does not grow with its rows; a line, a field or a compression ratio
beyond reason ends the read with one clear error. A row that cannot be split is counted under its
reason and left out. Nothing here knows what a column means, and no text is ever evaluated.

A quoted field may hold line breaks; it goes on until its quote closes (RFC 4180, section 2, rules 6
and 7), within bounds, so that one lost quote cannot swallow a file.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, cast

from world.errors import ImportFileError
from world.importers.parquet import MAGIC, csv_of_parquet

Aliases = Mapping[str, tuple[str, ...]]
"""Column name → the header names it goes by, best first, each as `column_key` spells it."""

DELIMITERS: Final = (",", ";", "\t", "|")
WRONG_FIELDS: Final = "wrong number of fields"
BROKEN_QUOTES: Final = "quotes are broken"
ENDLESS_QUOTE: Final = "a quote never closes"
OVERLONG_QUOTE: Final = "a quote is still open after 1,000 lines or 131,072 characters"
LONG_FIELD: Final = "a field is longer than 131,072 characters"
LOOSE_RETURN: Final = "a carriage return stands outside quotes"
MAX_RECORD_LINES: Final = 1_000
"""Physical lines of one row, at most."""

_CHUNK_BYTES: Final = 1 << 18
_MAX_LINE_CHARS: Final = 1 << 20
_MAX_RECORD_CHARS: Final = 1 << 20
_MOST_PLACES: Final = 8
"""Faults that are named with their lines; further ones are counted by their kind alone."""
_MAX_COLUMNS: Final = 2_000
# Bills compress 10 to 60 times; gzip's own ceiling is about 1,030.
_MAX_GZIP_RATIO: Final = 250
_GZIP_RATIO_FROM_BYTES: Final = 1 << 26
_MAGIC: Final = {
    b"PK\x03\x04": "a zip archive",
    MAGIC: "a Parquet file within gzip",
    b"ORC": "an ORC file",
    b"BZh": "a bzip2 file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"\xfd7zXZ": "an xz file",
    b"%PDF": "a PDF",
    b"Obj\x01": "an Avro file",
    b"{": "JSON",
}
_HIDDEN: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    r"\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)


def is_missing(text: str) -> bool:
    """Whether a field says nothing: empty, blank, or the literal ``NULL`` in any case.

    >>> is_missing("NULL"), is_missing(" "), is_missing("0")
    (True, True, False)
    """
    stripped = text.strip()
    return not stripped or stripped.upper() == "NULL"


def visible(text: str, limit: int = 2_048) -> str:
    r"""Text from outside, made safe to show and to store: no control or invisible characters.

    Each control character, invisible mark, line separator and lone surrogate is spelled as
    ``\xNN`` or ``\uNNNN``, so that a hostile name can neither paint a terminal nor split a line.
    Everything else stays as it is.

    Args:
        text: Any text.
        limit: Longest result, in characters; what is cut is marked with ``…`` and a digest, so
            that two long names which differ stay different.

    >>> visible("web\x1b[31m")
    'web\\x1b[31m'
    """
    cleaned = _HIDDEN.sub(_spell, text).strip()
    if len(cleaned) <= limit:
        return cleaned
    digest = hashlib.sha256(cleaned.encode()).hexdigest()[:12]
    return f"{cleaned[: limit - 13]}…{digest}"


def _spell(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def column_key(name: str) -> str:
    """A header name for comparison: case, spaces, BOMs and punctuation do not matter.

    >>> column_key("Billed Cost") == column_key("billed_cost") == column_key("BilledCost")
    True
    """
    return "".join(character for character in name.casefold() if character.isalnum())


class TableReader:
    """One pass over a delimited file.

    Use it as a context manager and iterate once; `skipped` and `sha256` are complete when the
    iteration has ended.

    Attributes:
        path: The file.
        header: Column names as written, without BOMs and surrounding spaces.
        delimiter: One of `DELIMITERS`.
        skipped: Reason → physical lines that could not be split; the first faults are named with
            their lines. A quoted field which swallows several lines counts each of them, so that
            no row disappears unseen.

    Args:
        path: The file to read.
        aliases: The columns that the caller knows. The delimiter under which most of them are
            found is the file's.
        what: What the file should be, for messages: ``bill``, ``metrics file``.

    Raises:
        ImportFileError: The file is missing, not a regular file, empty, binary, damaged, not
            UTF-8 (or UTF-16 with a BOM), or has lines beyond reason.
    """

    def __init__(self, path: Path, aliases: Aliases, what: str) -> None:
        self.path = path
        self.skipped: Counter[str] = Counter()
        self._what = what
        self._digest = hashlib.sha256()
        self._line = self._places = 0
        self._source = _open(path, what)
        try:
            self._compressed_bytes = path.stat().st_size
            self._stream = _decompressed(self._source, path)
            self._lines = _Lines(self._split())
            self.header, self.delimiter = self._read_header(aliases)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> TableReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def positions(self, aliases: Aliases) -> dict[str, int]:
        """Column name → its position in a row, for every column that the header has.

        Raises:
            ImportFileError: A known column stands twice.
        """
        keys = [column_key(name) for name in self.header]
        found: dict[str, int] = {}
        for column, names in aliases.items():
            alias = next((name for name in names if name in keys), None)
            if alias is None:
                continue
            if keys.count(alias) > 1:
                raise ImportFileError(
                    f"{self.path} has the column {self.header[keys.index(alias)]} twice",
                    "it is not clear which of them counts",
                    "Remove or rename one",
                )
            found[column] = keys.index(alias)
        return found

    def missing(self, columns: Sequence[str], fix: str) -> ImportFileError:
        """The error that says which columns are missing and which were found instead."""
        shown = ", ".join(visible(name, 40) for name in self.header[:12])
        more = f" and {len(self.header) - 12} more" if len(self.header) > 12 else ""
        return ImportFileError(
            f"{self.path} has no column {' and no '.join(columns)}",
            f"found: {shown}{more}; read with the delimiter {self.delimiter!r}",
            fix,
        )

    @property
    def sha256(self) -> str:
        """SHA-256 of the uncompressed bytes read so far."""
        return self._digest.hexdigest()

    @property
    def line(self) -> int:
        """Physical line where the row that was read last begins; the first line is 1."""
        return self._line

    def __iter__(self) -> Iterator[list[str]]:
        """Rows with exactly one field per column; the others are counted in `skipped`."""
        lines = self._lines
        reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
        width = len(self.header)
        while True:
            self._line = lines.begin_record()
            try:
                for row in reader:
                    if len(row) == width:
                        yield row
                    elif len(row) > width and not any(row[width:]):
                        yield row[:width]
                    elif any(field.strip() for field in row):
                        self.skipped[WRONG_FIELDS] += lines.number - self._line + 1
                    self._line = lines.begin_record()
            except (csv.Error, _RecordTooLongError) as error:
                self._skip_record(error)
                continue
            return

    def _skip_record(self, error: Exception) -> None:
        """Count the lines of a record that could not be split, with the reason and the place."""
        first, last = self._line, self._lines.number
        reason = _fault(error, ended=self._lines.ended, lines=last - first + 1)
        if self._places < _MOST_PLACES:
            self._places += 1
            where = f"line {first}" if last <= first else f"the record of lines {first} to {last}"
            reason = f"{reason} in {where}"
        self.skipped[reason] += max(1, last - first + 1)

    def _read_header(self, aliases: Aliases) -> tuple[tuple[str, ...], str]:
        for line in self._lines:
            text = line.strip()
            told = re.fullmatch(r"sep=[,;|]?", text)  # a hint that Excel reads
            if text and not told:
                break
        else:
            raise ImportFileError(
                f"{self.path} is empty",
                f"a {self._what} has a header line and rows",
                "Export it again",
            )
        known = {alias for names in aliases.values() for alias in names}
        best: tuple[int, int, tuple[str, ...], str] | None = None
        for delimiter in DELIMITERS:
            try:
                names = next(csv.reader([line], delimiter=delimiter, strict=True))
            except csv.Error:
                continue
            header = tuple(name.strip().strip("\ufeff") for name in names)
            score = (len(known & {column_key(name) for name in header}), len(header))
            if best is None or score > best[:2]:
                best = (*score, header, delimiter)
        if best is None or best[1] > _MAX_COLUMNS:
            raise ImportFileError(
                f"the first line of {self.path} is not a header",
                f"a {self._what} starts with column names" if best is None else "too many columns",
                "Export it again as CSV with a header line",
            )
        return best[2], best[3]

    def _split(self) -> Iterator[str]:
        """Lines with their line feed, decoded, bounded and hashed."""
        decoder: codecs.IncrementalDecoder | None = None
        pending, read_bytes, carriage = "", 0, False
        while True:
            chunk = self._read()
            read_bytes += len(chunk)
            self._digest.update(chunk)
            self._check_ratio(read_bytes)
            first = decoder is None
            if decoder is None:
                decoder = self._decoder(chunk)
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                raise ImportFileError(
                    f"{self.path} is not UTF-8 near byte {read_bytes - len(chunk) + error.start}",
                    error.reason,
                    "Convert it: iconv -f latin1 -t utf-8 OLD.csv > NEW.csv",
                ) from error
            self._check_text(text)
            if first:
                carriage = "\r" in text and "\n" not in text
            if carriage:
                text = text.replace("\r", "\n")
            if "\ufeff" in text:  # Azure exports repeat it at the first data row
                text = text.replace("\ufeff", "")
            lines = (pending + text).split("\n")
            pending = lines.pop()
            if len(pending) > _MAX_LINE_CHARS:
                raise ImportFileError(
                    f"{self.path} has a line of more than {_MAX_LINE_CHARS:,} characters",
                    f"no {self._what} has such lines",
                    "Check that it is CSV with one row a line",
                )
            for line in lines:
                yield line + "\n"
            if not chunk:
                if pending:
                    yield pending
                return

    def _read(self) -> bytes:
        try:
            return self._stream.read(_CHUNK_BYTES)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ImportFileError(
                f"{self.path} is a damaged gzip file", str(error), "Download or export it again"
            ) from error
        except OSError as error:
            raise ImportFileError(
                f"{self.path} cannot be read", error.strerror or str(error), "Check the disk"
            ) from error

    def _check_ratio(self, read_bytes: int) -> None:
        if read_bytes < _GZIP_RATIO_FROM_BYTES or self._stream is self._source:
            return
        if read_bytes > _MAX_GZIP_RATIO * self._compressed_bytes:
            raise ImportFileError(
                f"{self.path} unpacks to more than {_MAX_GZIP_RATIO} times its size",
                f"no {self._what} compresses so well; it may be made to fill the disk",
                "Unpack it yourself and give the .csv if you trust it",
            )

    def _decoder(self, chunk: bytes) -> codecs.IncrementalDecoder:
        for magic, name in _MAGIC.items():
            if chunk.startswith(magic):
                raise ImportFileError(
                    f"{self.path} is {name}",
                    "this importer reads CSV, plain or gzip, and Parquet",
                    "Export the data as CSV",
                )
        utf16 = chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return codecs.getincrementaldecoder("utf-16" if utf16 else "utf-8-sig")()

    def _check_text(self, text: str) -> None:
        if "\x00" in text:
            raise ImportFileError(
                f"{self.path} holds NUL bytes",
                f"it is a binary file and no {self._what}",
                "Give a CSV file, plain or gzip",
            )


class _RecordTooLongError(Exception):
    """A quote is still open after more lines or characters than a row can have."""


class _Lines(Iterator[str]):
    """Physical lines, counted, with a bound on how many of them one record takes.

    Attributes:
        number: Lines handed out.
        ended: Whether there are no more.
    """

    __slots__ = ("_chars", "_from", "_source", "ended", "number")

    def __init__(self, source: Iterator[str]) -> None:
        self._source = source
        self._chars = self._from = self.number = 0
        self.ended = False

    def begin_record(self) -> int:
        """Start counting anew; returns the number of the next line."""
        self._from, self._chars = self.number, 0
        return self.number + 1

    def __next__(self) -> str:
        if self._chars > _MAX_RECORD_CHARS or self.number - self._from >= MAX_RECORD_LINES:
            raise _RecordTooLongError
        try:
            line = next(self._source)
        except StopIteration:
            self.ended = True
            raise
        self.number += 1
        self._chars += len(line)
        return line


def _fault(error: Exception, *, ended: bool, lines: int) -> str:
    """Why a record of so many lines could not be split."""
    said = str(error)
    too_long = said.startswith("field larger")
    if ended:
        return ENDLESS_QUOTE
    if isinstance(error, _RecordTooLongError) or (too_long and lines > 1):
        return OVERLONG_QUOTE
    if too_long:
        return LONG_FIELD
    return LOOSE_RETURN if said.startswith("new-line character") else BROKEN_QUOTES


def _open(path: Path, what: str) -> BinaryIO:
    if path.is_dir():
        raise ImportFileError(
            f"{path} is a folder", f"a {what} is one file", f"Name the {what} inside it"
        )
    try:
        if path.exists() and not path.is_file():
            raise ImportFileError(
                f"{path} is not a regular file",
                f"a {what} is read twice, a pipe only once",
                "Save it to a file first",
            )
        return path.open("rb")
    except FileNotFoundError as error:
        raise ImportFileError(f"there is no file {path}", "", "Check the path") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ImportFileError(
            f"{path} cannot be read", reason or "", "Check the path and its permissions"
        ) from error


def _decompressed(source: BinaryIO, path: Path) -> BinaryIO:
    """The stream itself, or its content as CSV where the first bytes say gzip or Parquet."""
    magic = source.read(4)
    source.seek(0)
    if magic == MAGIC:
        return cast(BinaryIO, csv_of_parquet(path))
    if magic[:2] != b"\x1f\x8b":
        return source
    return cast(BinaryIO, io.BufferedReader(gzip.GzipFile(fileobj=source, mode="rb")))

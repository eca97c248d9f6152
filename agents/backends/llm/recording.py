"""Answers kept by what was asked, and played back without a network.

One file a question, ``<key>.json``; the key is a hash over persona, messages and model settings,
so that an answer can only be played back to exactly the question that it was given to. In a file,
answers stand in order of (step, round, seat, attempt). A question that the recording does not
hold is drift: it ends the run, and names the first message that differs.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.backends.llm.prompt import Rendered, first_difference
from world.errors import ConfigError, DigestMismatchError

SCHEMA = "llm-recording/1"
MANIFEST = "recording.json"
_MAX_FILE_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an episode a question was asked.

    Attributes:
        step: Steps done before, 0….
        round: Round of the negotiation.
        seat: Who was asked.
        kind: What was asked.
    """

    step: int
    round: int
    seat: str
    kind: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at an answer.

    Attributes:
        attempt: 1….
        mode: The way the model was held to a form.
        text: The answer's text; "" where there was none.
        fault: Kind of the fault; "" for none.
        detail: More about the fault.
        tokens_in: Prompt tokens.
        tokens_out: Completion tokens.
        usd: Dollars; None is not known.
        calls: Calls that were made for it; 0 where the budget forbade it.
    """

    attempt: int
    mode: str
    text: str = ""
    fault: str = ""
    detail: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = None
    calls: int = 1


def content_key(persona: str, rendered: Rendered, settings: dict[str, Any]) -> str:
    """SHA-256 over persona digest, messages and model settings."""
    content = [persona, rendered.system, rendered.user, settings]
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Recorder:
    """Writes answers into a folder.

    Args:
        folder: Made where it is not there; answers of other questions in it stay.
        model: What the run's ``--model`` was, so that playback needs no ``--model``.

    Raises:
        ConfigError: The folder cannot be written, or holds something else.
    """

    def __init__(self, folder: Path, model: str = "") -> None:
        self._folder = folder
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / MANIFEST).exists() and any(folder.iterdir()):
                raise ConfigError(
                    f"--record {folder}",
                    "the folder holds something that is no recording",
                    "Name an empty folder",
                )
            _write(folder / MANIFEST, {"schema": SCHEMA, "model": model})
        except OSError as error:
            raise ConfigError(
                f"--record {folder} cannot be written", error.strerror or "", "Name another folder"
            ) from error

    def keep(self, key: str, rendered: Rendered, place: Place, attempts: list[Attempt]) -> None:
        """Add the attempts of one question; the same place asked again replaces them."""
        path = self._folder / f"{key}.json"
        with self._lock:
            data = _read(path) if path.exists() else {}
            where = asdict(place)
            answers = [
                entry
                for entry in data.get("answers", [])
                if {name: entry.get(name) for name in where} != where
            ]
            answers += [{**where, **asdict(attempt)} for attempt in attempts]
            answers.sort(
                key=lambda entry: (entry["step"], entry["round"], entry["seat"], entry["attempt"])
            )
            messages = {"system": rendered.system, "user": rendered.user}
            _write(path, {"schema": SCHEMA, "key": key, "messages": messages, "answers": answers})


class Playback:
    """Reads answers back.

    Args:
        folder: A folder that a `Recorder` wrote.

    Raises:
        ConfigError: It is none.
    """

    def __init__(self, folder: Path) -> None:
        manifest = _manifest(folder)
        self.model = str(manifest.get("model", ""))
        self._folder = folder
        self._by_place: dict[Place, str] | None = None

    def answer(self, key: str, rendered: Rendered, place: Place) -> tuple[Attempt, ...]:
        """The attempts that were recorded for a question.

        Raises:
            DigestMismatchError: The recording does not hold it; says where the messages part.
        """
        path = self._folder / f"{key}.json"
        if not path.exists():
            raise self._drift(rendered, place)
        entries = [entry for entry in _read(path).get("answers", []) if isinstance(entry, dict)]
        own = [entry for entry in entries if _place(entry) == place]
        if not own and entries:
            # The same words were asked elsewhere too (a custom prompt without its step).
            before = [entry for entry in entries if _order(entry) <= (place.step, place.round)]
            chosen = _place((before or entries)[-1 if before else 0])
            own = [entry for entry in entries if _place(entry) == chosen]
        if not own:
            raise self._drift(rendered, place)
        return tuple(_attempt(entry) for entry in own)

    def _drift(self, rendered: Rendered, place: Place) -> DigestMismatchError:
        where = f"step {place.step + 1}, round {place.round}, seat {place.seat}, {place.kind}"
        what = f"playback drifts at {where}"
        recorded = self._messages_at(place)
        if recorded is None:
            return DigestMismatchError(
                what,
                f"{self._folder} holds no answer for it",
                "Play back with the scenario, seed, personas and protocol of the recording",
            )
        for name, now in (("system", rendered.system), ("user", rendered.user)):
            line, was, new = first_difference(recorded[name], now)
            if line:
                why = f"line {line} of the {name} message was {was} and is {new}"
                break
        else:
            why = "the messages are the same, but the persona's file or the model settings are not"
        return DigestMismatchError(
            what, why, "Play back with the scenario, seed, personas and protocol of the recording"
        )

    def _messages_at(self, place: Place) -> dict[str, str] | None:
        if self._by_place is None:
            self._by_place = {}
            for path in sorted(self._folder.glob("*.json")):
                if path.name == MANIFEST:
                    continue
                for entry in _read(path).get("answers", []):
                    self._by_place[_place(entry)] = path.name
        name = self._by_place.get(place)
        if name is None:
            return None
        messages = _read(self._folder / name).get("messages", {})
        return {part: str(messages.get(part, "")) for part in ("system", "user")}


def recorded_model(folder: Path) -> str:
    """The ``--model`` of the run that a recording was made of; "" where it had none.

    Raises:
        ConfigError: The folder is no recording.
    """
    return str(_manifest(folder).get("model", ""))


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise ConfigError(
            f"--playback {folder}", "it is no recording", "Make one first: run --record DIR"
        )
    manifest = _read(path)
    if manifest.get("schema") != SCHEMA:
        raise ConfigError(
            f"--playback {folder} has the schema {str(manifest.get('schema'))[:40]!r}",
            f"this version reads {SCHEMA!r}",
            "Record again",
        )
    return manifest


def _place(entry: dict[str, Any]) -> Place:
    return Place(
        int(entry.get("step", -1)),
        int(entry.get("round", -1)),
        str(entry.get("seat", "")),
        str(entry.get("kind", "")),
    )


def _order(entry: dict[str, Any]) -> tuple[int, int]:
    place = _place(entry)
    return place.step, place.round


def _attempt(entry: dict[str, Any]) -> Attempt:
    usd = entry.get("usd")
    return Attempt(
        attempt=int(entry.get("attempt", 1)),
        mode=str(entry.get("mode", "")),
        text=str(entry.get("text", "")),
        fault=str(entry.get("fault", "")),
        detail=str(entry.get("detail", "")),
        tokens_in=int(entry.get("tokens_in", 0)),
        tokens_out=int(entry.get("tokens_out", 0)),
        usd=None if usd is None else float(usd),
        calls=int(entry.get("calls", 1)),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ValueError("it is too large")
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{path} cannot be read", f"{type(error).__name__}", "Record again"
        ) from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} is no recording", "it holds no object", "Record again")
    return data


def _write(path: Path, data: dict[str, Any]) -> None:
    """Write whole or not at all, so that a kill leaves no half file."""
    temporary = path.with_suffix(f".{os.getpid()}.part")
    text = json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True)
    temporary.write_text(text + "\n", encoding="ascii")
    temporary.replace(path)

"""The line protocol: ``[START]``, one ``[STEP]`` per step, ``[END]``. One line per event, stable.

Scripts and acceptance checks read these lines, so their form is a contract: words without
spaces, rewards with two decimals, lower-case booleans, ``error`` either null or one JSON string.
Once ``[START]`` was written, ``[END]`` always is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.console.watcher import INTERRUPTED, WAITING, Pipe, Watcher, model_of
from orchestrator.spec import EpisodeResult


def word(value: object) -> str:
    """A value as one word: what could break a line apart is percent-encoded."""
    from urllib.parse import quote

    return quote(str(value), safe="/:=+>%._-~,@!*()[]{}#&;$'^|") or "none"


def start_line(run: str, header: Mapping[str, Any]) -> str:
    """``[START] task=… env=… model=… seed=… run=…``; a resumed run adds ``resumed_at=``."""
    scenario = header.get("scenario", {})
    line = (
        f"[START] task={word(scenario.get('name', ''))} env={word(scenario.get('world', ''))}"
        f" model={word(model_of(header))} seed={header.get('seed', 0)} run={word(run)}"
    )
    resumed_at = header.get("resumed_at", 0)
    return f"{line} resumed_at={resumed_at}" if resumed_at else line


def step_line(step: int, record: Mapping[str, Any]) -> str:
    """``[STEP] step=… action=… reward=0.00 done=… error=…``."""
    error = record.get("error")
    return (
        f"[STEP] step={step} action={word(record['action'])}"
        f" reward={decimals(record['reward'], 2)} done={_boolean(record['done'])}"
        f" error={'null' if error is None else json.dumps(str(error))}"
    )


def end_line(success: bool, steps: int, score: float, rewards: Sequence[float]) -> str:
    """``[END] success=… steps=… score=0.000 rewards=a,b``; no step is an empty list."""
    texts = ",".join(decimals(reward, 2) for reward in rewards)
    return (
        f"[END] success={_boolean(success)} steps={steps} score={decimals(score, 3)}"
        f" rewards={texts}"
    )


def decimals(value: float, digits: int) -> str:
    """A number with fixed decimals, never a negative zero.

    >>> decimals(-0.001, 2), decimals(-18, 2)
    ('0.00', '-18.00')
    """
    text = f"{float(value):.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def _boolean(value: object) -> str:
    return "true" if value else "false"


class LineLog(Watcher):
    """Writes the line protocol.

    Args:
        pipe: Where lines go.
    """

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self._pipe = pipe
        self._open = False

    def started(self, run: str, header: Mapping[str, Any]) -> None:
        """Write ``[START]``."""
        super().started(run, header)
        self._open = True
        self._pipe.line(start_line(run, header))

    def committed(self, step: int, record: Mapping[str, Any]) -> None:
        """Write ``[STEP]``."""
        super().committed(step, record)
        self._pipe.line(step_line(step, record))

    def ended(self, result: EpisodeResult) -> None:
        """Write ``[END]`` with the grader's verdict; an interrupted run is no success."""
        super().ended(result)
        if self._open:
            self._open = False
            success = result.success and result.stop_reason not in {INTERRUPTED, WAITING}
            self._pipe.line(end_line(success, result.steps, result.score, result.rewards))

    def close(self) -> None:
        """Write the ``[END]`` that an error kept back."""
        words, self._open = self.last_words(), False
        if words:
            self._pipe.line(words)

    def last_words(self) -> str:
        """The ``[END]`` line that is still owed."""
        return end_line(False, self.steps, 0.0, self.rewards) if self._open else ""

"""``--log live``: the view of `orchestrator.console.view`, redrawn in place on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.live import Live

from orchestrator.console.view import ViewState, render
from orchestrator.console.watcher import Watcher
from orchestrator.spec import EpisodeResult

_REFRESH_PER_SECOND = 12
_MAX_COLUMNS = 140


class LiveView(Watcher):
    """Redraws one picture while the episode runs, and leaves the last one standing.

    Args:
        console: Where it is drawn; colours and width are its own.
    """

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.state = ViewState()
        self._console = console
        self._live: Live | None = None

    def started(self, run: str, header: Mapping[str, Any]) -> None:
        """Open the view."""
        super().started(run, header)
        self.state.start(run, header)
        self._live = Live(
            console=self._console,
            refresh_per_second=_REFRESH_PER_SECOND,
            get_renderable=self._picture,
            transient=False,
        )
        self._live.start()

    def live(self, step: int, kind: str, data: Mapping[str, Any]) -> None:
        """Take what happened before the commit."""
        super().live(step, kind, data)
        if kind == "observation":
            self.state.observe(data)
        elif kind == "proposals":
            self.state.propose(data)
        elif kind == "decision":
            self.state.decide(data)

    def committed(self, step: int, record: Mapping[str, Any]) -> None:
        """Take a committed step."""
        super().committed(step, record)
        self.state.commit(step, record)

    def ended(self, result: EpisodeResult) -> None:
        """Draw the last picture."""
        super().ended(result)
        self.state.ended = True
        self.close()

    def close(self) -> None:
        """Stop redrawing, give the cursor back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def last_words(self) -> str:
        """Give the cursor back."""
        return "\x1b[?25h" if self._live is not None and self._console.is_terminal else ""

    def _picture(self) -> Any:
        return render(self.state, min(self._console.width, _MAX_COLUMNS))

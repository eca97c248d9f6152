"""The one retry policy, and the one rate limiter. The client itself never retries.

Retried is what may pass by itself: 429, 5xx, a connection that failed or broke. The wait is what
the endpoint asks for (Retry-After), else half a second doubled each time; a wait that ends past
the deadline is not begun.
"""

from __future__ import annotations

import asyncio
import time

from agents.backends.llm.faults import ModelFault

MAX_ATTEMPTS = 3
_PASSES = frozenset({"rate_limited", "server_error", "unreachable", "broken_reply"})
_FIRST_PAUSE_S = 0.5


def pause_before_retry_s(fault: ModelFault, attempt: int, left_s: float) -> float | None:
    """Seconds to wait before another attempt; None where there is none.

    Args:
        fault: What the last attempt met.
        attempt: Attempts made so far, 1….
        left_s: Seconds until the deadline.
    """
    if fault.kind not in _PASSES or attempt >= MAX_ATTEMPTS:
        return None
    asked = fault.retry_after_s
    pause = _FIRST_PAUSE_S * 2 ** (attempt - 1) if asked is None else asked
    return pause if pause < left_s else None


class Limiter:
    """Spaces the calls to one endpoint evenly; shared by every seat that uses it.

    Args:
        requests_per_minute: Most calls a minute; 0 is no limit.
    """

    def __init__(self, requests_per_minute: float = 0.0) -> None:
        self._interval_s = 60.0 / requests_per_minute if requests_per_minute > 0 else 0.0
        self._next_s = 0.0

    async def turn(self, left_s: float) -> None:
        """Wait for this call's turn.

        Raises:
            ModelFault: ``rate_limited``: the turn would come after the deadline.
        """
        if not self._interval_s:
            return
        now = time.monotonic()
        at = max(self._next_s, now)
        if at - now >= left_s:
            raise ModelFault("rate_limited", "our own limit leaves no turn before the deadline")
        self._next_s = at + self._interval_s
        await asyncio.sleep(at - now)

"""The record of an episode: hash-chained events, written once and read by everything else.

`verify.verify` and the exports are imported from their modules.
"""

from orchestrator.trace.events import EVENT_TYPES, SCHEMA, Chain, Event, Head, canonical, event
from orchestrator.trace.reader import find_run, list_runs, read
from orchestrator.trace.verify import Verification
from orchestrator.trace.writer import TraceWriter

__all__ = [
    "EVENT_TYPES",
    "SCHEMA",
    "Chain",
    "Event",
    "Head",
    "TraceWriter",
    "Verification",
    "canonical",
    "event",
    "find_run",
    "list_runs",
    "read",
]

"""What can go wrong between a prompt and a usable answer, as one closed set of kinds.

Whatever the endpoint, the wire or the model does, a seat sees one `ModelFault`. Its text is made
here, from the kind and from numbers; a server's own words never pass (they may hold a key, or an
order to whoever reads the trace).
"""

from __future__ import annotations

from typing import Literal, get_args

from agents.faults import SpentFault
from policies.records import Note, Usage

FaultKind = Literal[
    "timeout",
    "unreachable",
    "unauthorized",
    "forbidden",
    "not_found",
    "bad_request",
    "rate_limited",
    "server_error",
    "broken_reply",
    "huge_reply",
    "empty_choices",
    "refusal",
    "content_filter",
    "cut_short",
    "not_json",
    "wrong_schema",
    "wrong_tool",
    "invalid_reply",
    "budget",
    "unexpected",
]
KINDS: tuple[str, ...] = get_args(FaultKind)

WORDS: dict[str, str] = {
    "timeout": "no answer before the deadline",
    "unreachable": "the endpoint cannot be reached",
    "unauthorized": "the endpoint refuses the key (401)",
    "forbidden": "the key may not use this model (403)",
    "not_found": "the endpoint knows no such model or path (404)",
    "bad_request": "the endpoint refuses the request",
    "rate_limited": "the endpoint asks to slow down (429)",
    "server_error": "the endpoint failed",
    "broken_reply": "the answer broke off or is no chat completion",
    "huge_reply": "the answer is larger than is read",
    "empty_choices": "the answer holds no choice",
    "refusal": "the model refused",
    "content_filter": "the content filter took the answer",
    "cut_short": "the answer reached the token limit",
    "not_json": "the answer is not one JSON object",
    "wrong_schema": "the answer does not have the asked form",
    "wrong_tool": "the model called no tool, or another one",
    "invalid_reply": "the answer names what cannot be done",
    "budget": "the model budget is used up",
    "unexpected": "the call failed",
}
"""Kind → what happened, for people."""


class ModelFault(SpentFault):
    """One failed model call, or one answer that cannot be used.

    Args:
        kind: What happened.
        detail: More, in our own words; one short line.
        retry_after_s: How long the endpoint asked to wait, in seconds.
        usage: What was spent all the same.
        notes: What the trace records of it.
    """

    def __init__(
        self,
        kind: FaultKind,
        detail: str = "",
        *,
        retry_after_s: float | None = None,
        usage: Usage = Usage(),  # noqa: B008 - frozen
        notes: tuple[Note, ...] = (),
    ) -> None:
        self.fault_kind: FaultKind = kind
        self.detail = detail
        self.retry_after_s = retry_after_s
        what = f"{WORDS[kind]}: {detail}" if detail else WORDS[kind]
        super().__init__(kind, what, usage, notes, by_rules=kind == "budget")

    def with_record(self, usage: Usage, notes: tuple[Note, ...]) -> ModelFault:
        """The same fault with what was spent and what is to be recorded."""
        return ModelFault(self.fault_kind, self.detail, usage=usage, notes=notes)

    def __reduce__(self) -> tuple[type[ModelFault], tuple[FaultKind, str]]:  # type: ignore[override]
        return (type(self), (self.fault_kind, self.detail))

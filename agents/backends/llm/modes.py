"""Ways of holding a model to a form, from the strictest down, and finding the one that works.

Endpoints differ in what they accept and, worse, in what they accept and ignore. The first call to
an endpoint goes down the list until one way brings a JSON object; the others wait for it for a
moment, so that a refusal is met once and not once a seat. The way that worked is kept for the
room and named in the trace.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from agents.backends.llm.faults import ModelFault
from agents.backends.llm.parsing import object_in

Mode = Literal["json_schema", "function_calling", "json_mode", "grammar", "prompt"]
MODES: tuple[Mode, ...] = ("json_schema", "function_calling", "json_mode", "grammar", "prompt")
TOOL = "answer"
_PROBE_WAIT_S = 1.0
_NEXT_ON = frozenset({"bad_request", "not_json", "wrong_tool"})
_REFUSED = frozenset({"bad_request"})

JSON_GRAMMAR = r"""root ::= object
object ::= "{" ws ( pair ( "," ws pair )* )? "}" ws
pair ::= string ":" ws value
value ::= object | array | string | number | ( "true" | "false" | "null" ) ws
array ::= "[" ws ( value ( "," ws value )* )? "]" ws
string ::= "\"" ( [^"\\\x00-\x1f] | "\\" ["\\/bfnrt] )* "\"" ws
number ::= "-"? [0-9]+ ( "." [0-9]+ )? ws
ws ::= [ \n]?
"""
"""One JSON object in the grammar notation (GBNF) of llama.cpp's server."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What an endpoint answered, before anybody looked into it.

    Attributes:
        text: The message's text.
        finish: Why it ended, the endpoint's word.
        refused: Whether it is marked as a refusal.
        tool: Name of the tool called; "" for none.
        arguments: The tool's arguments, as text.
        tokens_in: Prompt tokens; None where the endpoint does not say.
        tokens_out: Completion tokens; None where it does not say.
    """

    text: str = ""
    finish: str = ""
    refused: bool = False
    tool: str = ""
    arguments: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None


def parameters(mode: Mode, schema: dict[str, Any]) -> dict[str, Any]:
    """Members of the request that ask for a form."""
    if mode == "json_schema":
        form = {"name": TOOL, "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if mode == "function_calling":
        function = {"name": TOOL, "description": "Give your answer.", "parameters": schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": TOOL}},
        }
    if mode == "json_mode":
        return {"response_format": {"type": "json_object"}}
    return {"grammar": JSON_GRAMMAR} if mode == "grammar" else {}


def text_of(mode: Mode, completion: Completion) -> str:
    """The text that should hold the object.

    Raises:
        ModelFault: The model refused, was cut off or filtered, or called the wrong tool.
    """
    if completion.refused:
        raise ModelFault("refusal")
    if completion.finish == "content_filter":
        raise ModelFault("content_filter")
    if completion.finish == "length":
        raise ModelFault("cut_short")
    if mode != "function_calling" or (not completion.tool and completion.text.strip()):
        return completion.text
    if completion.tool != TOOL:
        raise ModelFault("wrong_tool", "another tool" if completion.tool else "no tool")
    return completion.arguments


def answer_in(mode: Mode, completion: Completion) -> tuple[str, dict[str, Any]]:
    """The answer's text and the object in it.

    Raises:
        ModelFault: There is no usable object.
    """
    text = text_of(mode, completion)
    return text, object_in(text)


class ModeBoard:
    """Which way works at one endpoint with one model. Lives in one event loop.

    Args:
        fixed: The only way to use, or None to find one.
    """

    def __init__(self, fixed: Mode | None = None) -> None:
        self.mode: Mode = fixed or MODES[0]
        self.proven = fixed is not None
        self._probing: asyncio.Event | None = None

    async def enter(self, left_s: float) -> bool:
        """Wait for a probe that is under way, for a moment; returns whether the caller probes."""
        if self.proven:
            return False
        if self._probing is None:
            self._probing = asyncio.Event()
            return True
        try:
            await asyncio.wait_for(self._probing.wait(), min(_PROBE_WAIT_S, left_s / 8))
        except TimeoutError:
            return False
        return not self.proven and self._take_over()

    def _take_over(self) -> bool:
        if self._probing is None or self._probing.is_set():
            self._probing = asyncio.Event()
            return True
        return False

    def worked(self, mode: Mode) -> None:
        """A way brought an object."""
        if not self.proven:
            self.mode, self.proven = mode, True

    def leave(self) -> None:
        """The probe is over, however it ended."""
        if self._probing is not None:
            self._probing.set()

    def after(self, mode: Mode, fault: ModelFault, probing: bool) -> Mode | None:
        """The way to try next after a fault; None where another way would not help.

        A refused form is left by everybody; a form that was accepted and ignored only by the
        caller that probes, because each try of that kind is paid.
        """
        if self.proven:
            return self.mode if fault.fault_kind in _REFUSED and self.mode != mode else None
        if fault.fault_kind not in (_NEXT_ON if probing else _REFUSED):
            return None
        place = MODES.index(mode) + 1
        if place >= len(MODES):
            # Nothing brought an object: ask plainly from now on, once a call.
            self.mode, self.proven = MODES[-1], True
            return None
        if MODES.index(self.mode) < place:
            self.mode = MODES[place]
        return MODES[place]

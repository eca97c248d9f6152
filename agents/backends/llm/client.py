"""The real client: langchain-openai against any OpenAI-compatible endpoint.

The only module that imports it, and only when the first call is made. The client never retries
(`agents.backends.llm.retry` does), never switches to another API, and never reads more than a
bounded answer. Whatever it raises leaves here as one `ModelFault`, without the server's words.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents.backends.llm import wire
from agents.backends.llm.faults import FaultKind, ModelFault
from agents.backends.llm.modes import Completion
from world.errors import MissingExtraError

MAX_BODY_BYTES = 4_000_000
OPENAI = "https://api.openai.com/v1"
_STATUS: Mapping[int, FaultKind] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    408: "timeout",
    415: "bad_request",
    422: "bad_request",
    429: "rate_limited",
    501: "bad_request",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is.

    Attributes:
        base_url: Address; "" is OpenAI's own.
        key: The key; never shown, logged or recorded.
    """

    base_url: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One call, without a form.

    Attributes:
        system: System message.
        user: User message.
        model: The endpoint's name of the model.
        temperature: Or None for the endpoint's default.
        top_p: Or None for the endpoint's default.
        max_tokens: Most tokens of the answer.
        seed: Or None.
    """

    system: str
    user: str
    model: str
    temperature: float | None
    top_p: float | None
    max_tokens: int
    seed: int | None


class Client(Protocol):
    """Whoever can complete a call."""

    async def complete(self, call: Call, form: Mapping[str, Any], left_s: float) -> Completion:
        """Answer one call within `left_s` seconds.

        Args:
            call: The call.
            form: Members of the request that ask for a form.
            left_s: Deadline in seconds from now.

        Raises:
            ModelFault: It did not work.
        """
        ...


def load() -> tuple[Any, Any]:
    """Import what the client needs: takes seconds, so do it before the first deadline runs.

    Returns:
        The module httpx and the class ChatOpenAI.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import httpx
        from langchain_openai import ChatOpenAI
    except ImportError as error:
        raise MissingExtraError(
            "llm personas need langchain-openai",
            f"{error.name or error} is not installed",
            "Install it: pip install langchain-openai",
        ) from error
    return httpx, ChatOpenAI


class OpenAIClient:
    """A `Client` on langchain-openai. Used inside the wire's event loop only.

    Args:
        endpoint: Where to call.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._models: dict[Call, Any] = {}
        self._http: Any = None

    async def complete(self, call: Call, form: Mapping[str, Any], left_s: float) -> Completion:
        """Answer one call within `left_s` seconds."""
        try:
            model = self._model(call)
            message = await asyncio.wait_for(
                model.ainvoke(
                    [("system", call.system), ("human", call.user)],
                    **_members({**self._limit(call), **form}),
                ),
                left_s,
            )
        except MissingExtraError:
            raise
        except Exception as error:
            raise _fault(error) from None
        return _completion(message)

    async def prepare(self, call: Call) -> None:
        """Make what calls with these settings need, so that the first of them is no slower."""
        model = self._model(call)
        _ = model.root_async_client.chat.completions.with_raw_response

    def _limit(self, call: Call) -> dict[str, Any]:
        """Compatible servers know max_tokens; OpenAI's newer models only the longer name."""
        own = not self._endpoint.base_url or self._endpoint.base_url.rstrip("/") == OPENAI
        return {"max_completion_tokens" if own else "max_tokens": call.max_tokens}

    def _model(self, call: Call) -> Any:
        settings = Call("", "", *_settings(call))
        if settings not in self._models:
            self._models[settings] = self._make(call)
        return self._models[settings]

    def _make(self, call: Call) -> Any:
        httpx, ChatOpenAI = load()
        if self._http is None:
            self._http = httpx.AsyncClient(
                transport=_capped_transport(httpx),
                timeout=None,  # every call has a deadline of its own
                follow_redirects=False,
            )
            wire.at_exit(self._http.aclose)
        chosen = {"temperature": call.temperature, "top_p": call.top_p, "seed": call.seed}
        return ChatOpenAI(
            model=call.model,
            base_url=self._endpoint.base_url or OPENAI,
            api_key=self._endpoint.key or "none",
            max_retries=0,
            timeout=None,
            use_responses_api=False,
            http_async_client=self._http,
            **{name: value for name, value in chosen.items() if value is not None},
        )


def _settings(call: Call) -> tuple[str, float | None, float | None, int, int | None]:
    return call.model, call.temperature, call.top_p, call.max_tokens, call.seed


def _members(form: Mapping[str, Any]) -> dict[str, Any]:
    """Members of a request as keyword arguments of the client.

    ``response_format`` and ``grammar`` travel as extra body: named, the first would make the
    client parse the answer itself and lose what it cannot parse.
    """
    plain = {name: value for name, value in form.items() if name in {"tools", "tool_choice"}}
    extra = {name: value for name, value in form.items() if name not in plain}
    return {**plain, **({"extra_body": extra} if extra else {})}


def _capped_transport(httpx: Any) -> Any:
    """A transport that stops reading an answer that is too large."""

    class Capped(httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            read = 0
            async for part in self._stream:
                read += len(part)
                if read > MAX_BODY_BYTES:
                    raise ModelFault("huge_reply", f"over {MAX_BODY_BYTES} bytes")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Transport(httpx.AsyncHTTPTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            response = await super().handle_async_request(request)
            response.stream = Capped(response.stream)
            return response

    return Transport()


def _completion(message: Any) -> Completion:
    """An AIMessage as plain data; what has another type than it should is left out."""
    content = message.content
    if isinstance(content, list):
        parts = [part.get("text", "") if isinstance(part, dict) else part for part in content]
        content = "".join(part for part in parts if isinstance(part, str))
    meta = message.response_metadata if isinstance(message.response_metadata, dict) else {}
    used = message.usage_metadata or {}
    called, arguments = "", ""
    if message.tool_calls:
        first = message.tool_calls[0]
        called, arguments = str(first["name"]), json.dumps(first["args"])
    elif message.invalid_tool_calls:
        bad = message.invalid_tool_calls[0]
        called, arguments = str(bad.get("name") or ""), str(bad.get("args") or "")
    return Completion(
        text=content if isinstance(content, str) else "",
        finish=str(meta.get("finish_reason") or ""),
        refused=bool(message.additional_kwargs.get("refusal")),
        tool=called,
        arguments=arguments,
        tokens_in=_count(used.get("input_tokens")),
        tokens_out=_count(used.get("output_tokens")),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**53 else None


def _fault(error: BaseException) -> ModelFault:
    """Any exception of the client as one fault, by its class and status, never by its words."""
    import httpx
    import openai

    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(chain) < 8:
        chain.append(link)
        link = link.__cause__ or link.__context__
    for each in chain:
        if isinstance(each, ModelFault):
            return each
    if isinstance(error, openai.APIStatusError):
        return _status_fault(error.status_code, error.response.headers)
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return ModelFault("timeout")
    if isinstance(error, openai.APIResponseValidationError):
        return ModelFault("broken_reply")
    if isinstance(error, openai.APIConnectionError):
        refused = any(isinstance(each, httpx.ConnectError) for each in chain)
        return ModelFault("unreachable" if refused else "broken_reply")
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return ModelFault("unreachable", "its address is not one")
    if isinstance(error, httpx.HTTPError):
        return ModelFault("broken_reply")
    if isinstance(error, IndexError):
        return ModelFault("empty_choices")
    if isinstance(error, ValueError | KeyError | TypeError | AttributeError):
        # What the client raises over a body that is no chat completion: HTML, null choices, cut
        # or undecodable JSON. With a status below 400 there is nothing more to know.
        return ModelFault("broken_reply")
    return ModelFault("unexpected", type(error).__name__)


def _status_fault(status: int, headers: Any) -> ModelFault:
    kind = _STATUS.get(status, "server_error" if status >= 500 else "bad_request")
    detail = "" if str(status) in ("401", "403", "404", "429") else f"status {status}"
    return ModelFault(kind, detail, retry_after_s=_retry_after_s(headers.get("retry-after")))


def _retry_after_s(value: str | None) -> float | None:
    """Seconds of a Retry-After header: a number, or a date (RFC 9110, section 10.2.3)."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = date.timestamp() - time.time()  # noqa: TID251 - a date is compared with now
    return min(max(seconds, 0.0), 86_400.0) if seconds == seconds else None

"""What all language models of a room share: endpoints, budget, limits, and the recording.

Seats that use one endpoint share its client, its rate limiter and what was found out about it.
Keys come from the environment when a call is made ready, and go nowhere but to the endpoint.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agents.backends.llm import client as real
from agents.backends.llm import wire
from agents.backends.llm.client import OPENAI, Call, Client, Endpoint, OpenAIClient
from agents.backends.llm.exchange import Exchange, Line
from agents.backends.llm.meter import Meter, Price
from agents.backends.llm.modes import ModeBoard
from agents.backends.llm.prompt import Rendered
from agents.backends.llm.recording import Attempt, Place, Playback, Recorder, content_key
from agents.backends.llm.retry import Limiter
from agents.backends.llm.schema import schema_of
from agents.persona_schema import PersonaSpec
from agents.seat import DEFAULT_DEADLINE_S
from policies.records import Request
from world.errors import ConfigError, DigestMismatchError

_URL_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "API_BASE_URL")
_KEY_VARIABLES = ("OPENAI_API_KEY", "API_KEY", "HF_TOKEN")


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """What a run says about its models.

    Attributes:
        base_url: Endpoint of every persona whose file names no other; "" takes the environment's.
        model: ``--model`` of the run, kept with a recording.
        budget_usd: Most that all seats may spend together; None is no limit.
        record: Folder that answers are written to; "" for none.
        playback: Folder that answers are read from; "" for none.
    """

    base_url: str = ""
    model: str = ""
    budget_usd: float | None = None
    record: str = ""
    playback: str = ""


class ModelDesk:
    """Shared by the llm seats of one room.

    Args:
        settings: What the run says.
        environment: Where addresses and keys are looked up.

    Raises:
        ConfigError: A recording cannot be read or written.
    """

    def __init__(self, settings: DeskSettings, environment: Mapping[str, str] = os.environ) -> None:
        self.settings = settings
        self.meter = Meter(settings.budget_usd)
        self.playback = Playback(Path(settings.playback)) if settings.playback else None
        self._recorder = (
            Recorder(Path(settings.record), settings.model) if settings.record else None
        )
        self._environment = environment
        self._drift: DigestMismatchError | None = None
        self._clients: dict[Endpoint, Client] = {}
        self._limiters: dict[str, Limiter] = {}
        self._boards: dict[tuple[Endpoint, str, str], ModeBoard] = {}

    def make_ready(self, specs: Mapping[str, PersonaSpec]) -> None:
        """Check what can be known before the first call, and load the client.

        Args:
            specs: Seat → persona, those that speak through a model.

        Raises:
            ConfigError: No model name, no key where one is needed, or a budget without a price.
            MissingExtraError: The client is not installed.
        """
        for seat, spec in specs.items():
            if not spec.model.name:
                raise ConfigError(
                    f"seat {seat!r}: persona {spec.id!r} names no model",
                    "its backend is llm",
                    f"Give --model NAME, or --set {seat}.model.name=NAME",
                )
            if self.playback is None:
                self._check_call(seat, spec)
        if specs and self.playback is None:
            self._set_limits(specs)
            real.load()
            for spec in specs.values():
                made = self._line(spec).client
                if isinstance(made, OpenAIClient):
                    wire.send(made.prepare(_call(spec, "", ""))).result()

    def _check_call(self, seat: str, spec: PersonaSpec) -> None:
        endpoint = self._endpoint(spec)
        if not endpoint.base_url and not endpoint.key:
            raise ConfigError(
                f"seat {seat!r} would call OpenAI without a key",
                "neither an endpoint nor OPENAI_API_KEY is set",
                "Give --base-url http://…/v1, or set OPENAI_API_KEY",
            )
        if self.settings.budget_usd is not None and not _price(spec).known:
            raise ConfigError(
                f"--budget-usd: the price of {spec.model.name!r} is not known",
                "what costs an unknown amount cannot be held to a budget",
                f"Give --usd-per-mtok IN/OUT, or --set {seat}.model.usd_per_mtok_in=… and "
                f"{seat}.model.usd_per_mtok_out=… (0 for a model of your own)",
            )

    def _set_limits(self, specs: Mapping[str, PersonaSpec]) -> None:
        """One limiter an endpoint, as strict as the strictest of its personas."""
        asked: dict[str, float] = {}
        for spec in specs.values():
            rate = spec.model.requests_per_minute
            url = self._endpoint(spec).base_url
            if rate:
                asked[url] = min(rate, asked.get(url, rate))
        self._limiters = {url: Limiter(rate) for url, rate in asked.items()}

    def begin(self, spec: PersonaSpec, request: Request, rendered: Rendered) -> Exchange:
        """An exchange with a model, its budget reserved; `Exchange.run` makes the calls."""
        seconds = spec.backend.timeout_s or DEFAULT_DEADLINE_S
        return Exchange(
            line=self._line(spec),
            call=_call(spec, rendered.system, rendered.user),
            request=request,
            rendered=rendered,
            key=key_of(spec, rendered),
            deadline_s=time.monotonic() + seconds,
            recorder=self._recorder,
            schema=schema_of(request, spec.prompt.options, spec.prompt.reason_chars),
        )

    def played_back(
        self, spec: PersonaSpec, request: Request, rendered: Rendered
    ) -> tuple[Attempt, ...]:
        """What was recorded for a question.

        Raises:
            DigestMismatchError: The recording does not hold it.
        """
        if self.playback is None:
            raise RuntimeError("this desk plays nothing back")
        if self._drift is None:
            try:
                return self.playback.answer(key_of(spec, rendered), rendered, place_of(request))
            except DigestMismatchError as drift:
                self._drift = drift
        # Seats are asked together; whichever of them is heard, the first drift is told.
        raise self._drift

    def _line(self, spec: PersonaSpec) -> Line:
        endpoint = self._endpoint(spec)
        if endpoint not in self._clients:
            self._clients[endpoint] = OpenAIClient(endpoint)
        structured = spec.model.structured
        board = (endpoint, spec.model.name, structured)
        if board not in self._boards:
            self._boards[board] = ModeBoard(None if structured == "auto" else structured)
        return Line(
            self._clients[endpoint],
            self._boards[board],
            self._limiters.setdefault(endpoint.base_url, Limiter()),
            self.meter,
            _price(spec),
        )

    def _endpoint(self, spec: PersonaSpec) -> Endpoint:
        """The persona's own address, else the run's, else the environment's."""
        named, found = spec.model.base_url_env, self._environment
        if named and not found.get(named):
            raise ConfigError(
                f"persona {spec.id!r}: model.base_url_env = {named!r}",
                "that environment variable is not set",
                f"Set {named} to the address of the endpoint",
            )
        url = found.get(named, "") if named else self.settings.base_url
        if not url:
            url = next((found[name] for name in _URL_VARIABLES if found.get(name)), "")
        url = url.rstrip("/")
        if url and not url.startswith(("http://", "https://")):
            raise ConfigError(
                "the address of the model endpoint is not one",
                "it must start with http:// or https://",
                "For example --base-url http://127.0.0.1:8080/v1",
            )
        if spec.model.api_key_env:
            return Endpoint(url, found.get(spec.model.api_key_env, "").strip())
        # A token of another service never goes to OpenAI just because it is there.
        names = _KEY_VARIABLES if url and url != OPENAI else _KEY_VARIABLES[:2]
        return Endpoint(url, next((found[name].strip() for name in names if found.get(name)), ""))


def place_of(request: Request) -> Place:
    """Where in an episode a question is asked."""
    return Place(request.step, request.ask.round, request.ask.seat, request.ask.kind)


def key_of(spec: PersonaSpec, rendered: Rendered) -> str:
    """The key that an answer is recorded under."""
    return content_key(spec.digest, rendered, spec.model.model_dump(mode="json"))


def _call(spec: PersonaSpec, system: str, user: str) -> Call:
    model = spec.model
    return Call(
        system,
        user,
        model.name,
        model.temperature,
        model.top_p,
        model.max_tokens,
        model.seed,
    )


def _price(spec: PersonaSpec) -> Price:
    return Price(spec.model.usd_per_mtok_in, spec.model.usd_per_mtok_out)

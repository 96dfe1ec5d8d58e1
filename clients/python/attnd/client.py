"""client.py: a server, and the calls to it."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Optional, TypeVar
from urllib.parse import quote

from attnd.answer import Answer
from attnd.schema import (AttentionOptions, KeptLayer, LayerOptions, Masks, Model, ModelGradientOptions, ModelIntervention, ModelMetric, ModelOptions,
                          ModelSweep, ModelTokens)
from attnd.tensors import decoded, packed, unpacked, written
from attnd.transport import EVENTS, Call, OnProgress, Transport, address, check_progress, last_event, seconds_of

JSON = "application/json"
SAFETENSORS = "application/vnd.attnd.safetensors"
Self = TypeVar("Self", bound="Client")


class AttndError(Exception):
    """A refusal: status, a sentence, where in the request (pointer), what was expected and what was received."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None):
        where = f" ({problem['pointer']})" if problem.get("pointer") else ""
        super().__init__(f"{problem.get('error') or f'HTTP {status}'}{where}")
        self.status = status
        self.type: Optional[str] = problem.get("type")
        self.pointer: Optional[str] = problem.get("pointer")
        self.expected, self.received = problem.get("expected"), problem.get("received")
        self.request_id: Optional[str] = problem.get("request_id")
        #: Seconds to wait before another try.
        self.retry_after = retry_after


class Client:
    """
    A server of attnd, of any number of threads. Members of a request are arrays, lists or dicts as in the HTTP interface;
    `inputs` may be the queries alone. `with` closes the connections at its end.

    on_progress is called with {"done", "of", "what"} while the server computes, at most ten times a second, by the thread of
    the call; what it raises ends the call.

    url is that of ATTND_URL, else http://127.0.0.1:8080. timeout is in seconds, of a whole call with its waits and tries; a
    call may have its own. A call is tried again up to `retries` times: see Transport.exchange.
    """

    def __init__(self, url: str | None = None, key: str | None = None, timeout: float = 120, context: ssl.SSLContext | None = None,
                 *, retries: int = 3, headers: Mapping[str, str] | None = None):
        self.url, self.timeout = address(url), timeout
        self._fields = {**({"X-API-Key": key} if key else {}), **(headers or {})}
        self._transport = Transport(self.url, retries, context)
        self._call: Optional[Call] = None  # that of AsyncClient, which can end it

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that no call is using; the next call opens another one."""
        self._transport.close()

    def attention(self, inputs: Any, *, masks: Masks | None = None, options: AttentionOptions | None = None,
                  tokens: Any = None, timeout: float | None = None, on_progress: OnProgress | None = None) -> Answer:
        return self._compute("/v1/attention", timeout, on_progress, inputs, masks=masks, options=options, tokens=tokens)

    def multi_head_attention(self, inputs: Any, weights: Mapping[str, Any], *, masks: Masks | None = None,
                             options: LayerOptions | None = None, tokens: Any = None, timeout: float | None = None,
                             on_progress: OnProgress | None = None) -> Answer:
        return self._compute("/v1/multi-head-attention", timeout, on_progress, inputs, weights=weights, masks=masks, options=options, tokens=tokens)

    def attention_gradients(self, inputs: Mapping[str, Any], *, masks: Masks | None = None,
                            options: AttentionOptions | None = None, timeout: float | None = None, on_progress: OnProgress | None = None) -> Answer:
        """inputs has grad_output; gradients stand at the place of what they belong to: gradients["inputs"]["query"]."""
        return self._compute("/v1/attention/gradients", timeout, on_progress, inputs, masks=masks, options=options)

    def multi_head_attention_gradients(self, inputs: Mapping[str, Any], weights: Mapping[str, Any], *, masks: Masks | None = None,
                                       options: LayerOptions | None = None, timeout: float | None = None,
                                       on_progress: OnProgress | None = None) -> Answer:
        return self._compute("/v1/multi-head-attention/gradients", timeout, on_progress, inputs, weights=weights, masks=masks, options=options)

    def layers(self, *, timeout: float | None = None) -> list[KeptLayer]:
        found: list[KeptLayer] = []
        page: Any = {"next": ""}
        while page["next"] is not None:
            page = self._ask("GET", f"/v1/layers?after={quote(page['next'])}", timeout)
            found += page["layers"]
        return found

    def layer(self, name: str, *, timeout: float | None = None) -> KeptLayer:
        found: KeptLayer = self._ask("GET", _named("layers", name), timeout)
        return found

    def put_layer(self, name: str, weights: Mapping[str, Any], *, masks: Masks | None = None, options: LayerOptions | None = None,
                  headers: Mapping[str, str] | None = None, timeout: float | None = None) -> KeptLayer:
        """headers: such as If-Match."""
        request = _given(weights=weights, masks=masks, options=options)
        kept: KeptLayer = self._ask("PUT", _named("layers", name), timeout, request, headers=headers)
        return kept

    def delete_layer(self, name: str, *, timeout: float | None = None) -> None:
        self._ask("DELETE", _named("layers", name), timeout)

    def layer_attention(self, name: str, inputs: Any, *, masks: Masks | None = None, options: LayerOptions | None = None,
                        tokens: Any = None, timeout: float | None = None, on_progress: OnProgress | None = None) -> Answer:
        return self._compute(_named("layers", name) + "/attention", timeout, on_progress, inputs, masks=masks, options=options, tokens=tokens)

    def layer_gradients(self, name: str, inputs: Mapping[str, Any], *, masks: Masks | None = None,
                        options: LayerOptions | None = None, timeout: float | None = None, on_progress: OnProgress | None = None) -> Answer:
        return self._compute(_named("layers", name) + "/gradients", timeout, on_progress, inputs, masks=masks, options=options)

    def models(self, *, timeout: float | None = None) -> list[Model]:
        found: list[Model] = self._ask("GET", "/v1/models", timeout)["models"]
        return found

    def model(self, name: str, *, timeout: float | None = None) -> Model:
        found: Model = self._ask("GET", _named("models", name), timeout)
        return found

    def tokens(self, /, model: str, text: str | list[str], *, timeout: float | None = None, **inputs: Any) -> ModelTokens:
        request = {"inputs": {"text": text, **inputs}}
        found: ModelTokens = self._ask("POST", _named("models", model) + "/tokens", timeout, request, JSON)
        return found

    def model_attention(self, model: str, inputs: Any, *, options: ModelOptions | None = None,
                        timeout: float | None = None, on_progress: OnProgress | None = None) -> Answer:
        """
        inputs: a text or a list of them, or {"text": …, "pair": …}, {"ids": …}, {"pixels": …}, {"audio": …}, {"features": …},
        {"embeddings": …}.
        """
        request = _given(inputs=inputs if isinstance(inputs, Mapping) else {"text": inputs}, options=options)
        return self._run(_named("models", model) + "/attention", timeout, on_progress, request)

    def model_gradients(self, model: str, inputs: Any, *, options: ModelGradientOptions, timeout: float | None = None,
                        on_progress: OnProgress | None = None) -> Answer:
        """inputs as in model_attention; options has a metric: {"metric": {"words": ["tea"]}}."""
        request = _given(inputs=inputs if isinstance(inputs, Mapping) else {"text": inputs}, options=options)
        return self._run(_named("models", model) + "/gradients", timeout, on_progress, request)

    def intervene(self, model: str, inputs: Any, interventions: Sequence[ModelIntervention], *, options: ModelOptions | None = None,
                  timeout: float | None = None, on_progress: OnProgress | None = None) -> Answer:
        """interventions: such as [{"at": "context", "layers": [3], "heads": [0], "do": "zero"}]; the rest as in model_attention."""
        asked = _beside(options, interventions=interventions)
        return self.model_attention(model, inputs, options=asked, timeout=timeout, on_progress=on_progress)

    def sweep(self, model: str, inputs: Any, sweep: ModelSweep, metric: ModelMetric, *, options: ModelOptions | None = None,
              timeout: float | None = None, on_progress: OnProgress | None = None) -> Answer:
        """
        sweep and metric: such as {"at": "context", "over": ["layer", "head"], "do": "zero"} and {"words": ["tea"]}.
        options["return"] names what is wanted beside "sweep".
        """
        asked = _beside(options, sweep=sweep, metric=metric)
        wanted = asked.get("return")
        more = [wanted] if isinstance(wanted, str) else [] if wanted is None else list(wanted)
        asked["return"] = more if "sweep" in more else [*more, "sweep"]
        return self.model_attention(model, inputs, options=asked, timeout=timeout, on_progress=on_progress)

    # ---- requests ------------------------------------------------------------------------------------------------

    def _compute(self, path: str, timeout: float | None, on_progress: OnProgress | None, inputs: Any, **more: Any) -> Answer:
        return self._run(path, timeout, on_progress, _given(inputs=inputs if isinstance(inputs, Mapping) else {"query": inputs}, **more))

    def _run(self, path: str, timeout: float | None, on_progress: OnProgress | None, request: dict[str, Any]) -> Answer:
        """Events are text, so tensors come in base64."""
        options = request.get("options")
        check_progress(on_progress)
        if on_progress is None:
            return self._answer(self._ask("POST", path, timeout, request, accept=SAFETENSORS), options)
        asked = {**request, "options": {"format": "base64", **(options or {})}}
        return self._answer(decoded(self._ask("POST", path, timeout, asked, accept=EVENTS, on_progress=on_progress)), options)

    def _answer(self, content: Any, options: Any = None) -> Answer:
        outputs, facts = content if isinstance(content, tuple) else (content.get("outputs", {}), content)
        return Answer(outputs, facts, self.url, options)

    def _ask(self, method: str, path: str, timeout: float | None, request: dict[str, Any] | None = None, media: str = SAFETENSORS,
             accept: str = JSON, headers: Mapping[str, str] | None = None, on_progress: OnProgress | None = None) -> Any:
        fields = {"Accept": accept, **self._fields, **(headers or {})}
        body = None if request is None else packed(request) if media == SAFETENSORS else [written(request)]
        if body is not None:
            fields |= {"Content-Type": media, "Content-Length": str(sum(len(part) for part in body))}
        call = self._call or Call()
        call.timeout, call.on_progress = self.timeout if timeout is None else timeout, on_progress
        response, content = self._transport.exchange(call, method, path, body, fields, _is_repeatable(method, request, headers))
        if response.status >= 400:
            raise AttndError(response.status, _problem(content), seconds_of(response))
        if response.getheader("Content-Type") == SAFETENSORS:
            return unpacked(content)
        if response.getheader("Content-Type") == EVENTS:
            name, found = last_event(self.url, content)
            if name == "error":
                raise AttndError(found["status"], found)
            return found
        return json.loads(content) if content else None


def _named(folder: str, name: str) -> str:
    return f"/v1/{folder}/{quote(name, safe='')}"


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _beside(options: Any, **arguments: Any) -> Any:
    """Options with what a call takes as arguments of its own."""
    for name in [name for name in arguments if name in (options or {})]:
        raise ValueError(f"options has {name}, which is an argument of its own: give it once")
    return {**(options or {}), **arguments}


def _is_repeatable(method: str, request: Mapping[str, Any] | None, headers: Mapping[str, str] | None) -> bool:
    """Whether a second time does the same: no step of a cache without its length, no condition that the first time changes."""
    cache = ((request or {}).get("options") or {}).get("cache")
    is_step = cache is not None and not (isinstance(cache, Mapping) and cache.get("length") is not None)
    return method != "DELETE" and not is_step and not any(name.lower().startswith("if-") for name in headers or {})


def _problem(content: bytearray) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"error": content[:500].decode(errors="replace")}  # a proxy's words

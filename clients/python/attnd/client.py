"""client.py: a server, and what it answers."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from typing import Any, Mapping
from urllib.parse import quote, urlsplit

from attnd.schema import AttentionOptions, LayerOptions, Masks, ModelOptions
from attnd.tensors import packed, read_json, unpacked, written

JSON = "application/json"
SAFETENSORS = "application/vnd.attnd.safetensors"


class AttndError(Exception):
    """A refusal: status, a sentence, where in the request (pointer), what was expected and what was received."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: str | None = None):
        where = f" ({problem['pointer']})" if problem.get("pointer") else ""
        super().__init__(f"{problem.get('error') or f'HTTP {status}'}{where}")
        self.status, self.type, self.pointer = status, problem.get("type"), problem.get("pointer")
        self.expected, self.received = problem.get("expected"), problem.get("received")
        self.request_id = problem.get("request_id")
        #: Seconds to wait before another try.
        self.retry_after = float(retry_after) if retry_after and retry_after.isdigit() else None


class Answer:
    """Outputs by name (answer["attention"]), gradients, and what the server says beside: tokens, effective, diagnostics, …"""

    def __init__(self, outputs: dict[str, Any], facts: dict[str, Any], client: Client):
        self.outputs, self.client = outputs, client
        self.facts = {name: fact for name, fact in facts.items() if name != "shapes"}
        self.tokens, self.effective = facts.get("tokens"), facts.get("effective", {})
        self.diagnostics, self.gradients = facts.get("diagnostics", {}), facts.get("gradients", {})

    def __getitem__(self, name: str) -> Any:
        return self.outputs[name]

    def __repr__(self) -> str:
        shapes = (f"{name} {getattr(value, 'shape', '…')}" for name, value in (self.outputs or self.gradients).items())
        return f"Answer({', '.join(shapes)})"


class Client:
    """
    A server of attnd. Each thread has one connection that stays open. Members of a request are arrays, lists or dicts as
    in the HTTP interface; `inputs` may be the queries alone.
    """

    def __init__(self, url: str = "http://127.0.0.1:8080", key: str | None = None, timeout: float = 120,
                 context: ssl.SSLContext | None = None):
        self.url, self.key, self.timeout, self.context = url.rstrip("/"), key, timeout, context
        self._parts = urlsplit(self.url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise ValueError(f"{url} is not an address such as http://127.0.0.1:8080")
        self._local = threading.local()

    def attention(self, inputs: Any, *, masks: Masks | None = None, options: AttentionOptions | None = None,
                  tokens: Any = None) -> Answer:
        return self._compute("/v1/attention", inputs, masks=masks, options=options, tokens=tokens)

    def multi_head_attention(self, inputs: Any, weights: Mapping[str, Any], *, masks: Masks | None = None,
                             options: LayerOptions | None = None, tokens: Any = None) -> Answer:
        return self._compute("/v1/multi-head-attention", inputs, weights=weights, masks=masks, options=options, tokens=tokens)

    def attention_gradients(self, inputs: Mapping[str, Any], *, masks: Masks | None = None,
                            options: AttentionOptions | None = None) -> Answer:
        """inputs has grad_output; gradients stand at the place of what they belong to: gradients["inputs"]["query"]."""
        return self._differentiate("/v1/attention/gradients", inputs, masks=masks, options=options)

    def multi_head_attention_gradients(self, inputs: Mapping[str, Any], weights: Mapping[str, Any], *, masks: Masks | None = None,
                                       options: LayerOptions | None = None) -> Answer:
        return self._differentiate("/v1/multi-head-attention/gradients", inputs, weights=weights, masks=masks, options=options)

    def layers(self) -> list[dict[str, Any]]:
        return self._ask("GET", "/v1/layers")["layers"]

    def layer(self, name: str) -> dict[str, Any]:
        return self._ask("GET", _named("layers", name))

    def put_layer(self, name: str, weights: Mapping[str, Any], *, masks: Masks | None = None, options: LayerOptions | None = None,
                  headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        body = packed(_given(weights=weights, masks=masks, options=options))
        return self._ask("PUT", _named("layers", name), body, SAFETENSORS, headers=headers)

    def delete_layer(self, name: str) -> None:
        self._ask("DELETE", _named("layers", name))

    def layer_attention(self, name: str, inputs: Any, *, masks: Masks | None = None,
                        options: LayerOptions | None = None, tokens: Any = None) -> Answer:
        return self._compute(_named("layers", name) + "/attention", inputs, masks=masks, options=options, tokens=tokens)

    def layer_gradients(self, name: str, inputs: Mapping[str, Any], *, masks: Masks | None = None,
                        options: LayerOptions | None = None) -> Answer:
        return self._differentiate(_named("layers", name) + "/gradients", inputs, masks=masks, options=options)

    def models(self) -> list[dict[str, Any]]:
        return self._ask("GET", "/v1/models")["models"]

    def model(self, name: str) -> dict[str, Any]:
        return self._ask("GET", _named("models", name))

    def tokens(self, model: str, text: str | list[str], **inputs: Any) -> dict[str, Any]:
        body = written({"inputs": {"text": text, **inputs}})
        return self._ask("POST", _named("models", model) + "/tokens", [body], JSON)

    def model_attention(self, model: str, inputs: Any, *, options: ModelOptions | None = None) -> Answer:
        """inputs: a text, or {"text": …, "pair": …}, {"ids": …}, {"pixels": …}, {"audio": …}, {"features": …}, {"embeddings": …}."""
        request = _given(inputs={"text": inputs} if isinstance(inputs, str) else inputs, options=options)
        return self._answer(self._ask("POST", _named("models", model) + "/attention", [written(request)], JSON, SAFETENSORS))

    # ---- transport -----------------------------------------------------------------------------------------------

    def _compute(self, path: str, inputs: Any, **more: Any) -> Answer:
        request = _given(inputs=inputs if isinstance(inputs, Mapping) else {"query": inputs}, **more)
        return self._answer(self._ask("POST", path, packed(request), SAFETENSORS, SAFETENSORS))

    def _differentiate(self, path: str, inputs: Any, options: Any = None, **more: Any) -> Answer:
        request = _given(inputs=inputs, options={**(options or {}), "format": "base64"}, **more)
        return self._answer(self._ask("POST", path, [written(request)], JSON))

    def _answer(self, content: Any) -> Answer:
        outputs, facts = content if isinstance(content, tuple) else (content.get("outputs", {}), content)
        return Answer(outputs, facts, self)

    def _ask(self, method: str, path: str, body: list[Any] | None = None, media: str = JSON, accept: str = JSON,
             headers: Mapping[str, str] | None = None) -> Any:
        fields = {"Accept": accept, **({"X-API-Key": self.key} if self.key else {}), **(headers or {})}
        if body is not None:
            fields |= {"Content-Type": media, "Content-Length": str(sum(len(part) for part in body))}
        response, content = self._exchange(method, self._parts.path + path, body, fields)
        if response.status >= 400:
            raise AttndError(response.status, _problem(content), response.getheader("Retry-After"))
        if response.getheader("Content-Type") == SAFETENSORS:
            return unpacked(content)
        return read_json(content) if content else None

    def _exchange(self, method: str, path: str, body: list[Any] | None, fields: dict[str, str]):
        """Once more where a connection that had been kept was closed meanwhile: a request computes the same twice."""
        is_kept = getattr(self._local, "connection", None) is not None
        try:
            return self._once(method, path, body, fields)
        except (http.client.RemoteDisconnected, ConnectionError):
            self.close()
            if not is_kept:
                raise
        except BaseException:  # half an answer is in the connection
            self.close()
            raise
        return self._once(method, path, body, fields)

    def _once(self, method: str, path: str, body: list[Any] | None, fields: dict[str, str]):
        if getattr(self._local, "connection", None) is None:
            self._local.connection = self._connect()
        connection = self._local.connection
        connection.request(method, path, body, fields)
        response = connection.getresponse()
        return response, _read(response)

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname, self._parts.port
        if self._parts.scheme == "https":
            connection = http.client.HTTPSConnection(host, port, timeout=self.timeout, context=self.context)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self.timeout)
        try:
            connection.connect()
        except OSError as error:
            raise ConnectionError(f"{self.url} cannot be reached: {error}") from error
        return connection

    def close(self) -> None:
        """Closes the connection of this thread; the next call opens another one."""
        connection, self._local.connection = getattr(self._local, "connection", None), None
        if connection is not None:
            connection.close()


def _named(folder: str, name: str) -> str:
    return f"/v1/{folder}/{quote(name, safe='')}"


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _read(response: http.client.HTTPResponse) -> bytearray:
    """Into memory that arrays of the answer may be views of, and may be written to."""
    if response.length is None:
        return bytearray(response.read())
    content = bytearray(response.length)
    view, at = memoryview(content), 0
    while at < len(content):
        size = response.readinto(view[at:])
        if size == 0:
            raise http.client.IncompleteRead(bytes(view[:at]), len(content) - at)
        at += size
    response.read()  # ends the answer, so that the connection can be used again
    return content


def _problem(content: bytearray) -> dict[str, Any]:
    try:
        return json.loads(content)
    except ValueError:
        return {"error": content[:500].decode(errors="replace")}  # a proxy's words

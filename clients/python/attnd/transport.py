"""transport.py: connections to one server, a call on its way, and second tries."""

from __future__ import annotations

import http.client
import inspect
import json
import os
import random
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Optional, TypedDict
from urllib.parse import urlsplit

PIECE = 1 << 18  # bytes that are read between two looks at the clock
EVENTS = "text/event-stream"


class Progress(TypedDict):
    """How far a computation is: of, what is counted ("layer", "token", "task", "preparation")."""

    done: int
    of: int
    what: str


OnProgress = Callable[[Progress], None]


def check_progress(given: Any) -> None:
    """A coroutine that it returns would never run."""
    if inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(getattr(given, "__call__", None)):  # noqa: B004
        raise TypeError("on_progress must be a plain function, not an async one")


class Closed(Exception):
    """The connection was closed before an answer began."""


class Call:
    """A call on its way: the time that it has left, and what ends it from another thread."""

    def __init__(self) -> None:
        self._began, self._ended, self._lock = time.monotonic(), threading.Event(), threading.Lock()
        self._socket: Optional[socket.socket] = None
        self.timeout = 0.0
        self.on_progress: Optional[OnProgress] = None

    def left(self) -> float:
        seconds = self._began + self.timeout - time.monotonic()
        if seconds <= 0 or self._ended.is_set():
            raise TimeoutError
        return seconds

    def hold(self, used: socket.socket | None) -> None:
        with self._lock:
            self._socket = used
        self.left()

    def release(self) -> None:
        with self._lock:
            self._socket = None

    def wait(self, seconds: float) -> None:
        """With a random part, so that clients do not come back together."""
        self._ended.wait(min(seconds * random.uniform(1, 1.25), self.left()))
        self.left()

    def end(self) -> None:
        with self._lock:
            self._ended.set()
            if self._socket is not None:  # not the method of TLS, which another thread is using
                with suppress(OSError):  # it is closed already
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class Transport:
    """Connections that stay open between calls. A call has one to itself, so any number of threads may call."""

    def __init__(self, url: str, retries: int, context: ssl.SSLContext | None):
        self.url, self.retries, self.context = url, retries, context
        try:
            self._parts = urlsplit(self.url)
            self._host, self._port = self._parts.hostname or "", self._parts.port
        except ValueError as error:
            raise ValueError(f"{url} is not an address: {error}") from error
        if self._parts.scheme not in ("http", "https") or not self._host:
            raise ValueError(f"{url} is not an address such as http://127.0.0.1:8080")
        self._idle: list[http.client.HTTPConnection] = []

    def exchange(self, call: Call, method: str, path: str, body: list[Any] | None, fields: Mapping[str, str],
                 is_repeatable: bool) -> tuple[http.client.HTTPResponse, bytearray]:
        """
        Tries again, as long as the call has time: after a 503 as its Retry-After says, and, where a second time does no
        harm, after a connection that was closed before an answer began.
        """
        try:
            for tries in range(self.retries + 1):
                is_last = tries == self.retries
                try:
                    response, content = self._once(call, method, path, body, fields)
                except Closed as closed:
                    if is_last or not is_repeatable:
                        raise ConnectionError(f"{self.url} closed the connection: {closed}") from closed
                    call.wait(0.5 * 2**tries)
                    continue
                seconds = seconds_of(response) if response.status == 503 else None
                if is_last or seconds is None or seconds >= call.left():
                    break
                call.wait(seconds)
        except (TimeoutError, socket.timeout) as error:
            raise TimeoutError(f"{self.url} gave no answer within {call.timeout:g} s") from error
        except (ConnectionResetError, http.client.HTTPException) as error:
            raise ConnectionError(f"{self.url} broke off its answer: {error}") from error
        return response, content

    def _once(self, call: Call, method: str, path: str, body: list[Any] | None,
              fields: Mapping[str, str]) -> tuple[http.client.HTTPResponse, bytearray]:
        with self._connection(call) as connection:
            used = connection.sock
            try:
                with suppress(ConnectionError):  # a refusal may come before the body is read, and can be read still
                    connection.request(method, self._parts.path + path, body, dict(fields))
                response = connection.getresponse()
            except ConnectionError as error:
                raise Closed(str(error)) from error
            return response, _read(response, used, call)

    @contextmanager
    def _connection(self, call: Call) -> Iterator[http.client.HTTPConnection]:
        connection = self._idle_one() or self._connect(call)
        try:
            call.hold(connection.sock)
            connection.sock.settimeout(call.left())
            yield connection
        except BaseException:  # half an answer is in it
            connection.close()
            raise
        finally:
            call.release()
        if connection.sock is not None:
            self._idle.append(connection)

    def _idle_one(self) -> http.client.HTTPConnection | None:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            with selectors.DefaultSelector() as selector:
                selector.register(connection.sock, selectors.EVENT_READ)
                if not selector.select(0):
                    return connection
            connection.close()  # the server closed it meanwhile
        return None

    def _connect(self, call: Call) -> http.client.HTTPConnection:
        if self._parts.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=call.left(), context=self.context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=call.left())
        try:
            connection.connect()
        except OSError as error:
            raise ConnectionError(f"{self.url} cannot be reached: {error}") from error
        return connection

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


def address(url: str | None = None) -> str:
    return (url or os.environ.get("ATTND_URL") or "http://127.0.0.1:8080").rstrip("/")


def seconds_of(response: http.client.HTTPResponse) -> float | None:
    """Retry-After, where it is a number of seconds."""
    text = response.getheader("Retry-After", "")
    return float(text) if text.isdigit() else None


def _read(response: http.client.HTTPResponse, used: socket.socket, call: Call) -> bytearray:
    """Into memory that arrays of the answer may be views of, and may be written to."""
    length, at = response.length, 0
    content = bytearray(length or 0)
    while length is None or at < length:
        used.settimeout(call.left())
        piece = response.read1(PIECE)
        if not piece:
            break
        content[at:at + len(piece)] = piece
        at += len(piece)
        if call.on_progress is not None and response.getheader("Content-Type") == EVENTS:
            _tell(content, call.on_progress)
            at = len(content)
    if length is not None and at < length:
        raise http.client.IncompleteRead(bytes(content[:at]), length - at)
    response.read()  # ends the answer, so that the connection can be used again
    return content


def _event(text: bytes | bytearray) -> tuple[str, Any]:
    name, *lines = text.decode().removeprefix("event: ").split("\ndata: ")
    return name, json.loads("\n".join(lines))


def _tell(content: bytearray, on_progress: OnProgress) -> None:
    """Takes the events that are whole out of the content, but for the last one."""
    while content.startswith(b"event: progress\n") and (end := content.find(b"\n\n")) >= 0:
        on_progress(_event(content[:end])[1])
        del content[:end + 2]


def last_event(url: str, content: bytearray) -> tuple[str, Any]:
    if not content.endswith(b"\n\n"):
        raise ConnectionError(f"{url} broke off its answer")
    return _event(content)

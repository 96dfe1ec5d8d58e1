"""aio.py: the calls of Client for asyncio."""

from __future__ import annotations

import asyncio
import copy
import functools
import ssl
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from attnd.client import Client
from attnd.transport import Call, check_progress

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
Result = TypeVar("Result")
Self = TypeVar("Self", bound="AsyncClient")


def _awaited(method: Callable[Concatenate[Client, P], Result]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, Result]]:
    @functools.wraps(method)
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        one, loop = copy.copy(self._client), asyncio.get_running_loop()
        one._call = its_call = Call()
        check_progress(kwargs.get("on_progress"))
        if kwargs.get("on_progress"):
            kwargs["on_progress"] = functools.partial(loop.call_soon_threadsafe, kwargs["on_progress"])
        try:
            return await loop.run_in_executor(self._threads, functools.partial(method, one, *args, **kwargs))
        finally:
            its_call.end()
    return call


class AsyncClient:
    """
    The calls of Client, with the same arguments, for asyncio. Each runs in a thread of this client's own and has a connection
    to itself, `connections` of them at a time; others wait, and their timeout counts meanwhile. A call that is cancelled
    closes its connection, so that its thread and the server stop working on it. `async with` closes the client at its end.
    The event loop calls on_progress, and its exception handler gets what that raises.
    """

    def __init__(self, url: str | None = None, key: str | None = None, timeout: float = 120, context: ssl.SSLContext | None = None,
                 *, retries: int = 3, headers: Mapping[str, str] | None = None, connections: int = 16):
        self._client = Client(url, key, timeout, context, retries=retries, headers=headers)
        self._threads = ThreadPoolExecutor(connections, "attnd")

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Calls that have begun end by themselves; others are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    attention = _awaited(Client.attention)
    multi_head_attention = _awaited(Client.multi_head_attention)
    attention_gradients = _awaited(Client.attention_gradients)
    multi_head_attention_gradients = _awaited(Client.multi_head_attention_gradients)
    layers = _awaited(Client.layers)
    layer = _awaited(Client.layer)
    put_layer = _awaited(Client.put_layer)
    delete_layer = _awaited(Client.delete_layer)
    layer_attention = _awaited(Client.layer_attention)
    layer_gradients = _awaited(Client.layer_gradients)
    models = _awaited(Client.models)
    model = _awaited(Client.model)
    tokens = _awaited(Client.tokens)
    model_attention = _awaited(Client.model_attention)
    model_gradients = _awaited(Client.model_gradients)
    intervene = _awaited(Client.intervene)
    sweep = _awaited(Client.sweep)

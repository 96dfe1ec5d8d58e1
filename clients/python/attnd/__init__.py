"""attnd: attention as a service, from Python: NumPy arrays in and out over the standard library's HTTP. README.md shows it."""

__version__ = "0.2.0"

from attnd.aio import AsyncClient  # noqa: E402: view.py needs the version
from attnd.answer import Answer  # noqa: E402
from attnd.client import AttndError, Client  # noqa: E402
from attnd.view import HeadView, head_view  # noqa: E402

__all__ = ["Answer", "AsyncClient", "AttndError", "Client", "HeadView", "head_view"]

"""exchange.py: one request on one connection, and its outcome, complete or not."""

import re
import socket
import zlib

# What differs between two right answers to the same request.
VOLATILE = [(re.compile(rb'"modified":"[^"]*"'), b'"modified":""'),
            (re.compile(rb'"request_id":"[^"]*"'), b'"request_id":""'),
            (re.compile(rb'"(success|fail|queue|compute_\w+|count|ns|inference_count|execution_count|last_inference)":'
                        rb'(\d+|\{"count":\d+,"ns":\d+\})'), rb'"\1":0')]


class Outcome:
    """status is None when no whole answer came; then how says why: closed, reset, cut, refused, silent, garbage."""

    def __init__(self, how, status=None, headers=None, body=b""):
        self.how, self.status, self.headers, self.body = how, status, headers or {}, body

    @property
    def word(self):
        return str(self.status) if self.status else self.how

    @property
    def content(self):
        """The parts that two answers to the same request must share."""
        text = self.body
        if self.headers.get("content-encoding") == "gzip":
            text = zlib.decompress(text, 31)
        for pattern, plain in VOLATILE:
            text = pattern.sub(plain, text)
        return self.status, self.headers.get("content-type"), text


class Request:
    def __init__(self, name, method, path, body=None, content_type="application/json", headers=None, is_chunked=False,
                 before=(), after=None, answers=(200,)):
        self.name, self.method, self.path, self.before, self.after = name, method, path, before, after
        self.answers = answers  # the statuses of success
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"] + [f"{key}: {value}" for key, value in (headers or {}).items()]
        if body is not None:
            lines += [f"Content-Type: {content_type}",
                      "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body)}"]
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        if is_chunked:
            half = len(body) // 2
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:], b""))
        self.bytes = head + (body or b"")


def parse(data):
    """The answer in data; True when it is complete, None when more data must follow; raises ValueError for garbage."""
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        return None
    first, *lines = head.split(b"\r\n")
    match = re.fullmatch(rb"HTTP/1\.1 (\d\d\d) [ -~]+", first)
    if not match:
        raise ValueError(first)
    headers = {key.decode().lower(): value.decode() for key, _, value in (line.partition(b": ") for line in lines)}
    status = int(match.group(1))
    if status == 100:
        return parse(rest)
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while True:
            size, found, rest = rest.partition(b"\r\n")
            if not found:
                return None
            length = int(size, 16)
            if len(rest) < length + 2:
                return None
            body, rest = body + rest[:length], rest[length + 2:]
            if length == 0:
                return Outcome("whole", status, headers, body)
    length = 0 if status in (204, 304) else int(headers["content-length"])
    return Outcome("whole", status, headers, rest[:length]) if len(rest) >= length else None


class Exchange:
    """A connection on which request was sent; read may be called again after a time-out."""

    def __init__(self, port, request, seconds):
        self.data, self.socket, self.failure = b"", None, None
        try:
            self.socket = socket.create_connection(("127.0.0.1", port), seconds)
            self.socket.sendall(request.bytes)
        except ConnectionRefusedError:
            self.failure = Outcome("refused")
        except OSError:
            pass  # an answer may be there nevertheless

    def read(self, seconds):
        if self.failure or self.socket is None:
            return self.failure or Outcome("refused")
        self.socket.settimeout(seconds)
        try:
            while True:
                piece = self.socket.recv(1 << 18)
                if not piece:
                    return Outcome("cut" if self.data else "closed")
                self.data += piece
                outcome = parse(self.data)
                if outcome:
                    return outcome
        except TimeoutError:
            return Outcome("silent")
        except ConnectionError:
            return Outcome("reset")
        except (ValueError, KeyError):
            return Outcome("garbage")

    def close(self):
        if self.socket:
            self.socket.close()


def ask(port, request, seconds=5):
    exchange = Exchange(port, request, seconds)
    outcome = exchange.read(seconds)
    exchange.close()
    return outcome

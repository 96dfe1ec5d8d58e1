#!/usr/bin/env python3
"""first_answer.py PORT: waits until /readyz on 127.0.0.1 answers 200, and prints that moment, in ms since 1970."""

import socket
import sys
import time

PATIENCE_SECONDS = 30


def is_ready(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(12) == b"HTTP/1.1 200"
    except OSError:
        return False


def main():
    port = int(sys.argv[1])
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_ready(port):
        if time.monotonic() > end:
            return 1
        time.sleep(0.001)
    print(int(time.time() * 1000))
    return 0


if __name__ == "__main__":
    sys.exit(main())

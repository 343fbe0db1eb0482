"""A server for tests of publishers over HTTP: it remembers requests and answers as a test decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, bytes, dict[str, str]] | None


class Requests(BaseHTTPRequestHandler):
    """Takes requests, remembers them, and sends the test's answer; None closes the connection without one."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server: Any = self.server
        server.requests.append((self.path, dict(self.headers), body))
        reply: Answer = server.answer(self.path, self.headers, body)
        if reply is None:
            self.close_connection = True
            return
        status, answer, headers = reply
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class's name for it
        pass


@contextmanager
def listening(answer: Callable[..., Answer]) -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    server.requests = []
    server.answer = answer
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

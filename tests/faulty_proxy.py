"""An HTTP proxy in front of a real server that loses answers, answers by itself, cuts bodies or stalls, as told."""

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

LOSE_ANSWER = "lose answer"  # the request is carried out, the connection then closed
CUT_BODY = "cut body"  # half of the answer's body, under the length of the whole
STALL = "stall"  # nothing for some seconds
PASS = "pass"


@dataclass(frozen=True)
class Answer:
    """An answer instead of the server's."""

    status: int
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)


Fault = str | Answer


@dataclass
class Proxy:
    """What to do to the requests to come, and those that came as "METHOD path"."""

    url: str
    faults: list[Fault] = field(default_factory=list)  # one a request that `concerns` picks
    concerns: Callable[[str], bool] = lambda _: True
    seen: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fault(self, request: str) -> Fault:
        with self.lock:
            self.seen.append(request)
            return self.faults.pop(0) if self.faults and self.concerns(request) else PASS


def s3_error(status: int, code: str) -> Answer:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>told by the test</Message></Error>"
    return Answer(status, body, {"Content-Type": "application/xml"})


@contextmanager
def faulty_proxy(target: str, stall_s: float = 3.0, port: int = 0) -> Iterator[Proxy]:
    host = urlsplit(target).netloc
    proxy = Proxy("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = proxy.fault(f"{self.command} {self.path}")
            if fault == STALL:
                time.sleep(stall_s)
                self.close_connection = True
                return
            if isinstance(fault, Answer):
                self.reply(fault.status, dict(fault.headers), fault.body.encode(), len(fault.body.encode()))
                return
            status, headers, body = self.forward(content)
            if fault == LOSE_ANSWER:
                self.close_connection = True
                return
            self.reply(status, headers, body[: len(body) // 2] if fault == CUT_BODY else body, len(body))
            self.close_connection |= fault == CUT_BODY

        def forward(self, content: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection(host, timeout=60)
            headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
            try:
                connection.request(self.command, self.path, content, headers)
                answer = connection.getresponse()
                return answer.status, dict(answer.getheaders()), answer.read()
            finally:
                connection.close()

        def reply(self, status: int, headers: dict[str, str], body: bytes, length: int) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = do_HEAD = handle_any

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)

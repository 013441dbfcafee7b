"""The fake as a server: lets requests in, has a resource answer them, checks both, and fails as told.

A mistake that GitHub would pass over in silence (a field it does not know) or that the fake itself makes is kept in
`mistakes` and raised when the fake is closed.
"""

import hashlib
import json
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from faulty_proxy import CUT_BODY, LOSE_ANSWER, PASS, Answer, Proxy

from fake_github import validation
from fake_github.access import Token, check, role_in
from fake_github.apps import token_of_app
from fake_github.limits import Limits
from fake_github.paging import page_of
from fake_github.refusals import Refusal, moved, not_found
from fake_github.resources import ROUTES
from fake_github.routing import Reply, Request, Route
from fake_github.world import Repository, World

_BROKEN = 418  # not tried again by any client
_BY_ID = "repositories"


@dataclass
class FakeGitHub:
    """`proxy` says what is to go wrong between it and its client, as faulty_proxy does for a real server."""

    world: World
    proxy: Proxy
    limits: Limits
    prefix: str = ""  # before every path, as /api/v3 is of GitHub Enterprise
    mistakes: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return self.proxy.url + self.prefix

    def answer(self, method: str, target: str, headers: dict[str, str], content: bytes) -> Answer:
        with self._lock:
            try:
                if not target.startswith(f"{self.prefix}/"):
                    return Answer(404, "<html>a page of GitHub Enterprise</html>", {"Content-Type": "text/html"})
                return self._answer(method, target.removeprefix(self.prefix), headers, content)
            except Exception:
                self.mistakes.append(f"{method} {target}: the fake broke:\n{traceback.format_exc()}")
                return Answer(_BROKEN, '{"message": "the fake of GitHub broke"}')

    def _answer(self, method: str, target: str, headers: dict[str, str], content: bytes) -> Answer:
        token: Token | None = None
        route: Route | None = None
        try:
            token = self._token(headers.get("authorization", ""))
            conditional = headers.get("if-none-match")
            route, request = self._let_in(method, target, token, content)
            reply = route.answer(request)
            more: dict[str, str] = {}
            if route.paged:
                reply, more = self._page(reply, route, request, urlsplit(target).path)
            self._check(f"{method} {target}", validation.mistake_in_answer(reply.content, _model(route)))
        except Refusal as refusal:
            self._check(f"{method} {target}", validation.mistake_in_refusal(refusal.content))
            return self._as_answer(refusal.status, refusal.content, token, refusal.headers)
        answer = self._as_answer(reply.status, reply.content, token, more)
        if method == "GET":
            answer.headers["ETag"] = f'W/"{hashlib.sha256(answer.body.encode()).hexdigest()}"'
            if conditional == answer.headers["ETag"]:
                self.limits.budget(token).used -= 1  # GitHub does not count it
                return Answer(304, "", answer.headers | self.limits.budget(token).headers)
        return answer

    def _let_in(self, method: str, target: str, token: Token | None, content: bytes) -> tuple[Route, Request]:
        self.limits.count(token, method)
        parts = urlsplit(target)
        path, by_id = self._named(parts.path)
        found = ROUTES.find(method, path)
        if found is None:
            self.mistakes.append(f"{method} {target}: the fake does not have it; add it to tests/fake_github")
            raise not_found()
        route, places = found
        repository = by_id
        if repository is None and "repo" in places:
            repository = self._repository(method, places, token, parts.query, path)
        if token is not None and token.kind == "app" and route.needs:
            raise Refusal(403, "Resource not accessible by integration")
        if repository is not None and route.needs:
            check(repository, token, *route.needs)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if unknown := sorted(query.keys() - route.query):
            self.mistakes.append(f"{method} {target}: the fake does not know the parameter {', '.join(unknown)}")
        body = self._body(f"{method} {target}", route, content)
        return route, Request(self.world, self.url, token, repository, places, query, body)

    def _named(self, path: str) -> tuple[str, Repository | None]:
        """`/repositories/ID/…`, to which GitHub's links lead, by its other name."""
        parts = path.split("/")
        if len(parts) < 3 or parts[1] != _BY_ID or not parts[2].isdigit():
            return path, None
        repository = self.world.repository_of_id(int(parts[2]))
        return "/".join(["", "repos", repository.owner.login, repository.name, *parts[3:]]), repository

    def _repository(
        self, method: str, places: dict[str, str], token: Token | None, query: str, path: str
    ) -> Repository:
        former = self.world.repository_once_called(places["owner"], places["repo"])
        if former is None or role_in(former, token) is None:
            return self.world.repository(places["owner"], places["repo"])
        url = "/".join([self.url, _BY_ID, str(former.id), *path.split("/")[4:]])
        raise moved(f"{url}?{query}" if query else url, method)

    def _token(self, authorization: str) -> Token | None:
        if not authorization:
            return None
        scheme, _, value = authorization.partition(" ")
        token = self.world.tokens.get(value) or token_of_app(self.world, value)
        if scheme.lower() not in ("bearer", "token") or token is None:
            raise Refusal(401, "Bad credentials")
        return token

    def _body(self, request: str, route: Route, content: bytes) -> Any:
        if route.body is None:
            if content:
                self.mistakes.append(f"{request}: GitHub ignores a body there")
            return None
        try:
            body = json.loads(content or b"{}")
        except ValueError as error:
            raise Refusal(400, "Problems parsing JSON") from error
        for name in validation.fields_that_github_ignores(body, route.body):
            self.mistakes.append(f"{request}: GitHub ignores the field {name}")
        return body

    def _page(self, reply: Reply, route: Route, request: Request, path: str) -> tuple[Reply, dict[str, str]]:
        rest = path.split("/")[3 if path.startswith(f"/{_BY_ID}/") else 4 :]
        url = "/".join([self.url, _BY_ID, str(request.repository.id), *rest])
        items, more = page_of(reply.content, request.query, url)
        if isinstance(route.paged, str):
            return Reply({"total_count": len(reply.content), route.paged: items}, reply.status), more
        return Reply(items, reply.status), more

    def _check(self, request: str, mistake: str | None) -> None:
        if mistake is not None:
            self.mistakes.append(f"{request}: the fake's answer is none of GitHub's: {mistake}")

    def _as_answer(self, status: int, content: Any, token: Token | None, more: dict[str, str]) -> Answer:
        body = "" if content is None else json.dumps(content)
        return Answer(
            status,
            body,
            {
                "Content-Type": "application/json; charset=utf-8",
                "X-GitHub-Media-Type": "github.v3; format=json",
                **self.limits.budget(token).headers,
                **more,
            },
        )


def _model(route: Route) -> Any:
    return list[route.model] if route.paged is True else route.model


@contextmanager
def fake_github(prefix: str = "") -> Iterator[FakeGitHub]:
    """An empty one on a free port; `prefix` is /api/v3 for one as of GitHub Enterprise. Raises AssertionError at the
    end for what nobody was told of."""
    world = World()
    fake = FakeGitHub(world, Proxy(""), Limits(world), prefix)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet, or each answer waits for an acknowledgement
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = fake.proxy.fault(f"{self.command} {self.path}")
            assert fault in (PASS, LOSE_ANSWER, CUT_BODY) or isinstance(fault, Answer), fault
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = fault if isinstance(fault, Answer) else fake.answer(self.command, self.path, headers, content)
            if fault == LOSE_ANSWER:
                self.close_connection = True
                return
            body = answer.body.encode()
            self.send_response_only(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status not in (204, 304):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if fault == CUT_BODY else body)
            self.close_connection |= fault == CUT_BODY

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    except BaseException as error:
        for mistake in fake.mistakes:
            error.add_note(mistake)
        raise
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
    assert not fake.mistakes, "\n".join(fake.mistakes)

"""A simple package index of tiny wheels on 127.0.0.1, in HTML (PEP 503) or JSON (PEP 691), and pip kept to it."""

import base64
import hashlib
import html
import io
import json
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

TINY_TORCH = """
class cuda:
    class nccl:
        version = staticmethod(lambda: (2, 21, 5))
    is_available = staticmethod(lambda: False)

class backends:
    class cudnn:
        is_available = staticmethod(lambda: False)

class __config__:
    show = staticmethod(lambda: "")

class _C:
    pass

compiled_with_cxx11_abi = lambda: True
from torch import version
from torch.version import __version__
"""


def tiny_torch(version: str) -> dict[str, str]:
    """The files of a package that answers what is asked of a build's torch."""
    return {
        "torch/__init__.py": TINY_TORCH,
        "torch/version.py": f"__version__ = {version!r}\ncuda = hip = None\ngit_version = {'c' * 40!r}\n",
    }


@dataclass(frozen=True)
class Offered:
    """A file as its page tells of it."""

    name: str
    content: bytes
    yanked: bool = False
    requires_python: str = ""
    sha256: str | None = None  # told instead of the true one

    @property
    def told_sha256(self) -> str:
        return self.sha256 or hashlib.sha256(self.content).hexdigest()


@dataclass
class PackageIndex:
    """What the index has; tests add to it while it is served."""

    address: str = ""
    as_json: bool = False
    packages: dict[str, list[Offered]] = field(default_factory=dict)
    raw: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)  # path -> status, media type, content
    asked: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)

    def add(
        self,
        package: str,
        version: str,
        tag: str = "py3-none-any",
        files: Mapping[str, str] | None = None,
        requires: tuple[str, ...] | None = None,
        **told: object,
    ) -> Offered:
        """Offer a wheel: torch is one that can be inspected and needs numpy, anything else an empty module."""
        if files is None:
            files = tiny_torch(version) if package == "torch" else {f"{package}.py": f"__version__ = {version!r}\n"}
        if requires is None:
            requires = ("numpy",) if package == "torch" else ()
        offered = Offered(f"{package}-{version}-{tag}.whl", wheel(package, version, tag, files, requires), **told)
        self.packages.setdefault(package, []).append(offered)
        return offered

    def answer(self, path: str) -> tuple[int, str, bytes]:
        self.asked.append(path)
        if path in self.raw:
            return self.raw[path]
        folder, _, name = path.strip("/").rpartition("/")
        if folder == "files":
            for offered in (file for files in self.packages.values() for file in files):
                if offered.name == unquote(name):
                    return 200, "application/octet-stream", offered.content
        if not folder and name in self.packages:
            page = self._json(name) if self.as_json else self._html(name)
            return 200, "application/vnd.pypi.simple.v1+json" if self.as_json else "text/html", page.encode()
        return 404, "text/html", b"<h1>no such page</h1>"

    def _html(self, package: str) -> str:
        lines = []
        for file in self.packages[package]:
            extra = ' data-yanked="broken"' if file.yanked else ""
            extra += f' data-requires-python="{html.escape(file.requires_python)}"' if file.requires_python else ""
            href = f"/files/{quote(file.name)}#sha256={file.told_sha256}"
            lines.append(f'<a href="{href}"{extra}>{html.escape(file.name)}</a><br/>')
        return "<!DOCTYPE html><html><body><h1>Links</h1>" + "\n".join(lines) + "</body></html>"

    def _json(self, package: str) -> str:
        files = [
            {
                "filename": file.name,
                "url": f"{self.address}/files/{quote(file.name)}",
                "hashes": {"sha256": file.told_sha256},
                "requires-python": file.requires_python or None,
                "yanked": "broken" if file.yanked else False,
            }
            for file in self.packages[package]
        ]
        return json.dumps({"meta": {"api-version": "1.1"}, "name": package, "files": files})


def wheel(package: str, version: str, tag: str, files: Mapping[str, str], requires: tuple[str, ...]) -> bytes:
    info = f"{package}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires)
    members = {
        **files,
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = ""
    for name, text in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text.encode())}\n"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in {**members, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(name, text)
    return content.getvalue()


@contextmanager
def serve() -> Iterator[PackageIndex]:
    """An index, served until the end of the block. It has a numpy, which its torch requires."""
    index = PackageIndex()
    index.add("numpy", "2.4.6")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.logins.append(self.headers.get("Authorization"))
            status, kind, content = index.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            if status in (301, 302):
                self.send_header("Location", content.decode())
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        index.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield index
        finally:
            server.shutdown()
            thread.join()


def keep_pip_offline(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """No setting of this machine reaches pip, and the index that it would use by itself does not answer."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("NETRC", raising=False)

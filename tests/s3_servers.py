"""Real S3 servers for the tests, each on free ports of 127.0.0.1 and ended by its process id."""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

BUCKET = "torchbench-tests"
ACCESS_KEY, SECRET_KEY = "AKIDTESTS", "a-secret-of-the-tests"
READER_KEY = "AKIDREADER"  # of SeaweedFS, with the same secret: may read and list, and not write
READY_TIMEOUT_S = 60
_FIRST_PORT, _WORKERS = 10_000, 8


@dataclass(frozen=True)
class Endpoint:
    """A running server."""

    url: str

    def variables(self) -> dict[str, str]:
        """The environment by which boto3 finds it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let this process and those that it starts find it."""
        for name, value in self.variables().items():
            monkeypatch.setenv(name, value)

    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=10),
        )


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, of those that no connection of another process is given meanwhile, and of those of
    this worker of pytest alone."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ours = range(_FIRST_PORT + worker % _WORKERS, _first_of_connections(), _WORKERS)
    found: list[int] = []
    with ExitStack() as held:  # until all are known, so that they differ
        for port in random.Random().sample(ours, len(ours)):
            one = held.enter_context(socket.socket())
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise AssertionError(f"fewer than {count} free ports")


def _first_of_connections() -> int:
    """The first port that the system gives to connections; below it are those of servers."""
    path = Path("/proc/sys/net/ipv4/ip_local_port_range")
    return int(path.read_text().split()[0]) if path.exists() else 32_768


def program(name: str) -> str:
    """A program that came with a package of the `test` extra."""
    path = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    assert path is not None, f"{name} is not installed; pip install -e '.[test]'"
    return path


# One request at a time: moto looks at the condition of a write and then writes, and two threads may do so at once.
_MOTO = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""


@contextmanager
def moto() -> Iterator[Endpoint]:
    """An emulator: conditional writes are right, every credential is accepted."""
    (port,) = free_ports(1)
    with _served([sys.executable, "-c", _MOTO, str(port)], port) as endpoint:
        yield endpoint


@contextmanager
def seaweedfs(folder: Path) -> Iterator[Endpoint]:
    """A real object store with signatures and conditional writes."""
    master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc = free_ports(8)
    identities = [
        {"name": name, "credentials": [{"accessKey": key, "secretKey": SECRET_KEY}], "actions": actions}
        for name, key, actions in (
            ("tests", ACCESS_KEY, ["Admin", "Read", "Write", "List", "Tagging"]),
            ("reader", READER_KEY, ["Read", "List"]),
        )
    ]
    (folder / "ids.json").write_text(json.dumps({"identities": identities}))
    (folder / "data").mkdir()
    ports = {
        "master.port": master, "master.port.grpc": master_grpc, "volume.port": volume, "volume.port.grpc": volume_grpc,
        "filer.port": filer, "filer.port.grpc": filer_grpc, "s3.port": s3, "s3.port.grpc": s3_grpc,
        "s3.port.iceberg": 0, "s3.port.lance": 0,  # catalogues that would take ports of their own choice
        "master.volumeSizeLimitMB": 64, "volume.max": 50,
    }  # fmt: skip
    command = [program("weed"), "-logtostderr=true", "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1"]
    command += ["-ip.bind=127.0.0.1", "-s3", "-s3.autoCreateBucket=false", f"-s3.config={folder / 'ids.json'}"]
    command += [f"-{name}={value}" for name, value in ports.items()]
    with _served(command, s3) as endpoint:
        yield endpoint


@contextmanager
def rclone(folder: Path) -> Iterator[Endpoint]:
    """A server that ignores the conditions of a write: the store has to refuse it."""
    (port,) = free_ports(1)
    command = [program("rclone"), "serve", "s3", str(folder), f"--addr=127.0.0.1:{port}", "--config="]
    with _served([*command, f"--auth-key={ACCESS_KEY},{SECRET_KEY}"], port) as endpoint:
        yield endpoint


@contextmanager
def _served(command: list[str], port: int) -> Iterator[Endpoint]:
    """The server of `command`, with the bucket made, ended whatever happens."""
    endpoint = Endpoint(f"http://127.0.0.1:{port}")
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _make_bucket(endpoint, process, log)
            yield endpoint
        finally:
            process.kill()
            process.wait()


def _make_bucket(endpoint: Endpoint, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    client, deadline = endpoint.client(), time.monotonic() + READY_TIMEOUT_S
    while True:
        if process.poll() is not None:
            log.seek(0)
            raise AssertionError(f"the server ended with exit code {process.returncode}: {log.read()[-1500:].decode()}")
        try:
            client.create_bucket(Bucket=BUCKET)
            client.put_object(Bucket=BUCKET, Key="ready", Body=b"")  # some answer before they can store anything
            client.delete_object(Bucket=BUCKET, Key="ready")
            return
        except (BotoCoreError, ClientError) as error:
            if isinstance(error, ClientError) and "BucketAlready" in str(error):
                return
            assert time.monotonic() < deadline, f"no S3 server within {READY_TIMEOUT_S} s: {error}"
            time.sleep(0.2)

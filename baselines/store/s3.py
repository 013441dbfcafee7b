"""A bucket as the store: `s3://bucket/prefix`, at AWS or at any endpoint that keeps S3's conditional writes.

Credentials, region and endpoint come from where boto3 looks for them (`AWS_ACCESS_KEY_ID`, `AWS_PROFILE`, a role,
`AWS_ENDPOINT_URL`, ...), never from the location. None is shown: an address with a password in it is refused, and what
others say of an address is told without it.
"""

import os
import random
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from botocore.exceptions import ConnectionError as NoConnection

from baselines.errors import BaselineError
from baselines.store.interface import Store, Versioned, check_key, check_prefix, coming_to

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_DEFAULT_REGION = "us-east-1"
_CONNECT_TIMEOUT_S = 10
_READ_TIMEOUT_S = 60
_ATTEMPTS = 5  # of boto3: connection errors, 5xx and throttling are tried again with growing pauses
_CONFLICTS = 20  # 409 answers to one write: another write of the key was in progress each time
_TORN_READS = 3
_LARGEST = 5 * 2**30  # bytes of one request
_BLOCK = 2**20
_PAGE = 1000  # keys in one answer to a list, S3's most
_WRITERS = "torchbench-writers"  # metadata of every object
_WRITERS_KEPT = 16  # so many may write over a write whose answer was lost, and it is still told from one that was lost
_CHECK = ".precondition-check"  # begins with a dot: no key of the store can
_NO_VERSION = '"00000000000000000000000000000000"'


_WHAT_TO_DO = {
    "NoSuchBucket": "there is no such bucket; create it, or correct the location",
    "InvalidAccessKeyId": "the access key is not known there; check the credentials and the endpoint",
    "SignatureDoesNotMatch": "the secret key is wrong; check the credentials",
    "InvalidToken": "the session token is wrong; assume the role again",
    "ExpiredToken": "the session token has expired; assume the role again (an hour is usual) and start again: "
    "what was stored stays",
    "RequestTimeTooSkewed": "this machine's clock is wrong; set it",
    "AccessDenied": "not allowed; the role needs s3:GetObject and s3:PutObject on the prefix, "
    "and s3:ListBucket on the bucket",
    "PermanentRedirect": "the bucket is in another region; set AWS_REGION",
    "AuthorizationHeaderMalformed": "the bucket is in another region; set AWS_REGION",
    "IllegalLocationConstraintException": "the bucket is in another region; set AWS_REGION",
    "SlowDown": "the endpoint throttles; try again later",
}
_ALIKE = {
    "ExpiredTokenException": "ExpiredToken",
    "RequestExpired": "ExpiredToken",
    "TokenRefreshRequired": "ExpiredToken",
    "InvalidClientTokenId": "InvalidAccessKeyId",
    "403": "AccessDenied",
    "AllAccessDisabled": "AccessDenied",
    "301": "PermanentRedirect",
    "503": "SlowDown",
}


class S3Store(Store):
    """The store below `prefix` of a bucket. A write is whole or not there at all; S3 has no half objects."""

    def __init__(self, bucket: str, prefix: str = "") -> None:
        if not _BUCKET.fullmatch(bucket):
            raise BaselineError(f"s3://{bucket}: not a name of a bucket; a location is s3://bucket/prefix")
        self.bucket = bucket
        self.prefix = f"{check_key(prefix)}/" if prefix else ""
        self._preconditions_hold = False
        with self._errors(""):
            self._client = _make_client()

    @property
    def location(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def exists(self) -> bool:
        """True if anything is stored. Raises BaselineError if the bucket is missing or cannot be listed."""
        with self._errors(""):
            return self._client.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix, MaxKeys=1)["KeyCount"] > 0

    def read_if_present(self, key: str) -> bytes | None:
        found = self.read_versioned(key)
        return None if found is None else found.content

    def read_versioned(self, key: str) -> Versioned | None:
        name = self._name(key)
        with self._errors(key):
            for attempt in range(_TORN_READS):
                try:
                    answer = self._client.get_object(Bucket=self.bucket, Key=name)
                    return Versioned(answer["Body"].read(), _version(answer))
                except ClientError as error:
                    if _code(error) in ("NoSuchKey", "404"):
                        return None
                    raise
                except (IncompleteReadError, ResponseStreamingError, ReadTimeoutError):
                    if attempt == _TORN_READS - 1:
                        raise
        raise AssertionError

    def list(self, prefix: str) -> list[str]:
        start = self.prefix + check_prefix(prefix)
        found = []
        with self._errors(prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=start, PaginationConfig={"PageSize": _PAGE}
            )
            for page in pages:
                found += [entry["Key"].removeprefix(self.prefix) for entry in page.get("Contents", ())]
        return sorted(key for key in found if _is_ours(key))

    def write_if(self, key: str, content: bytes, version: str | None) -> bool:
        """See Store. A write whose answer was lost, and which boto3 therefore sent a second time, meets its own first
        one: the nonces in the object's metadata, this writer's and those of the writers before it, tell."""
        name, nonce = self._name(key), secrets.token_hex(8)
        etag, _, writers = (version or "").partition(" ")
        condition = {"IfNoneMatch": "*"} if version is None else {"IfMatch": etag}
        with self._errors(key):
            self._require_preconditions()
            writers = ",".join([nonce, *filter(None, writers.split(","))][:_WRITERS_KEPT])
            if self._conditional(name, content, condition, {_WRITERS: writers}):
                return True
            return nonce in self._writers(name)

    def create_from_file(self, key: str, path: Path) -> bool:
        """See Store. It is one request, whatever its size: only so it can be conditional on every server."""
        name, nonce = self._name(key), secrets.token_hex(8)
        with self._errors(key), path.open("rb") as content:
            if os.fstat(content.fileno()).st_size > _LARGEST:
                raise BaselineError(f"{self.location}: {key}: {path} is larger than {_LARGEST // 2**30} GiB, S3's most")
            self._require_preconditions()
            if self._head(name) is not None:
                return False  # found out before all of it is sent
            if self._conditional(name, content, {"IfNoneMatch": "*"}, {_WRITERS: nonce}):
                return True
            return nonce in self._writers(name)

    def read_to_file(self, key: str, path: Path) -> bool:
        name = self._name(key)
        with self._errors(key), coming_to(path) as scratch:
            for attempt in range(_TORN_READS):
                try:
                    body = self._client.get_object(Bucket=self.bucket, Key=name)["Body"]
                    with scratch.open("wb") as file:
                        for block in body.iter_chunks(_BLOCK):
                            file.write(block)
                    return True
                except ClientError as error:
                    if _code(error) in ("NoSuchKey", "404"):
                        scratch.unlink(missing_ok=True)  # it was removed between two attempts
                        return False
                    raise
                except (IncompleteReadError, ResponseStreamingError, ReadTimeoutError):
                    if attempt == _TORN_READS - 1:
                        raise
        raise AssertionError

    def size(self, key: str) -> int | None:
        with self._errors(key):
            answer = self._head(self._name(key))
            return None if answer is None else int(answer["ContentLength"])

    def delete(self, key: str) -> None:
        with self._errors(key):
            self._client.delete_object(Bucket=self.bucket, Key=self._name(key))

    def _writers(self, name: str) -> tuple[str, ...]:
        """The nonces of the last writers of an object, newest first."""
        answer = self._head(name)
        return () if answer is None else tuple(_writers_of(answer).split(","))

    def _head(self, name: str) -> dict[str, Any] | None:
        """What the endpoint says of an object; None if there is none."""
        try:
            return self._client.head_object(Bucket=self.bucket, Key=name)
        except ClientError as error:
            if _code(error) in ("NoSuchKey", "404"):
                return None
            raise

    def _conditional(
        self, name: str, content: bytes | IO[bytes], condition: dict[str, str], metadata: dict[str, str] | None = None
    ) -> bool:
        """One conditional write, sent again as long as another write of the key is in progress (409)."""
        for attempt in range(_CONFLICTS):
            if not isinstance(content, bytes):
                content.seek(0)
            try:
                self._client.put_object(
                    Bucket=self.bucket, Key=name, Body=content, Metadata=metadata or {}, **condition
                )
                return True
            except ClientError as error:
                status, code = error.response["ResponseMetadata"].get("HTTPStatusCode"), _code(error)
                if status == 412 or code in ("PreconditionFailed", "NoSuchKey"):
                    return False  # NoSuchKey: the object that had the version was removed
                if status != 409 and code != "ConditionalRequestConflict":
                    raise
                time.sleep(random.uniform(0, min(1.0, 0.02 * 2**attempt)))
        raise BaselineError(f"{self.location}: {name}: {_CONFLICTS} conflicts in a row; try again later")

    def _require_preconditions(self) -> None:
        """Refuse an endpoint that ignores conditions: there, two writers would undo each other unseen."""
        if self._preconditions_hold:
            return
        name = self.prefix + _CHECK
        self._conditional(name, b"", {"IfNoneMatch": "*"})
        for header, condition in (
            ("If-None-Match", {"IfNoneMatch": "*"}),
            ("If-Match", {"IfMatch": _NO_VERSION}),
        ):
            if self._conditional(name, b"", condition):
                raise BaselineError(
                    f"{self.location}: the endpoint ignores {header}, so that writers would overwrite each other; use "
                    "AWS S3 or another server with conditional writes"
                )
        self._preconditions_hold = True

    def _name(self, key: str) -> str:
        return self.prefix + check_key(key)

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        where = f"{self.location}: {key}" if key else self.location
        try:
            yield
        except ClientError as error:
            code = _ALIKE.get(_code(error), _code(error))
            message = _WHAT_TO_DO.get(code, error.response["Error"].get("Message", ""))
            raise BaselineError(f"{where}: {message} ({_code(error)})") from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise BaselineError(
                f"{where}: no AWS credentials are set; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or assume a role"
            ) from error
        except (NoConnection, HTTPClientError) as error:
            raise BaselineError(f"{where}: no answer after {_ATTEMPTS} attempts ({_one_line(error)})") from error
        except (BotoCoreError, ValueError) as error:
            raise BaselineError(f"{where}: {_one_line(error)}") from error
        except OSError as error:  # of a file that is stored or written
            raise BaselineError(f"{where}: {error.filename}: {error.strerror or error}") from error


def _make_client() -> Any:
    session = boto3.session.Session()
    client = session.client(
        "s3",
        region_name=session.region_name or _DEFAULT_REGION,
        config=Config(
            connect_timeout=_CONNECT_TIMEOUT_S,
            read_timeout=_READ_TIMEOUT_S,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            # Other servers than AWS's know no trailing checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
    if urlsplit(client.meta.endpoint_url).username is not None:
        raise BaselineError(
            "the endpoint's address holds a user or a password; credentials do not belong there: set AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY, and AWS_ENDPOINT_URL without them"
        )
    return client


def _version(answer: dict[str, Any]) -> str:
    """The etag, and after a space the nonces of the last writers."""
    return f"{answer['ETag']} {_writers_of(answer)}"


def _writers_of(answer: dict[str, Any]) -> str:
    return answer.get("Metadata", {}).get(_WRITERS, "")


def _is_ours(key: str) -> bool:
    """False for the store's own objects, and for what others keep below the prefix under names that are no keys."""
    try:
        check_key(key)
    except BaselineError:
        return False
    return True


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _one_line(error: Exception) -> str:
    """What it says, without a user or a password that stands before the host of an address."""
    return re.sub(r"[^/\s]+@", "", " ".join(str(error).split()))

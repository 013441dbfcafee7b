"""One file over http: what may pass is tried again, what is cut off is no file, and logins go to their host alone."""

import base64
import os
from pathlib import Path

import pytest

from torchbenchmark.builds import download
from torchbenchmark.builds.build_errors import BuildNotFound, BuildUnavailable
from torchbenchmark.builds.download import download_file


def test_a_file_is_written_as_it_is_served(index, tmp_path):
    index.raw["/a.whl"] = (200, "application/octet-stream", b"content")
    assert download_file(f"{index.address}/a.whl", tmp_path / "a").changed
    assert (tmp_path / "a").read_bytes() == b"content"


@pytest.mark.parametrize(
    ("status", "error", "said", "attempts"),
    [
        (404, BuildNotFound, r"is not there \(HTTP 404\)", 1),
        (403, BuildUnavailable, r"access refused \(HTTP 403\); credentials belong in ~/.netrc", 1),
        (400, BuildUnavailable, r"cannot be read \(HTTP 400\)", 1),
        (503, BuildUnavailable, r"cannot be read \(HTTP 503\)", 3),
    ],
)
def test_what_may_pass_is_tried_again_and_what_may_not_is_told(index, tmp_path, status, error, said, attempts):
    index.raw["/a.whl"] = (status, "text/html", b"no")
    with pytest.raises(error, match=said):
        download_file(f"{index.address}/a.whl", tmp_path / "a")
    assert index.asked == ["/a.whl"] * attempts
    assert not (tmp_path / "a").exists()


def test_a_host_that_does_not_answer_is_unavailable(tmp_path, index):
    with pytest.raises(BuildUnavailable, match="Connection refused"):
        download_file("http://127.0.0.1:9/a.whl", tmp_path / "a")


def test_a_file_that_is_too_large_is_refused(index, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "LARGEST", 5)
    index.raw["/a.whl"] = (200, "application/octet-stream", b"content")
    with pytest.raises(BuildUnavailable, match="is larger than"):
        download_file(f"{index.address}/a.whl", tmp_path / "a")


def test_the_login_of_netrc_is_sent_to_its_host(index, tmp_path):
    index.raw["/a.whl"] = (200, "application/octet-stream", b"content")
    netrc = Path(os.environ["HOME"]) / ".netrc"
    netrc.write_text("machine 127.0.0.1 login someone password hunter2\n")
    netrc.chmod(0o600)
    download_file(f"{index.address}/a.whl", tmp_path / "a")
    assert index.logins == [f"Basic {base64.b64encode(b'someone:hunter2').decode()}"]


def test_a_file_of_a_folder_is_copied(tmp_path):
    (tmp_path / "a.whl").write_bytes(b"content")
    download_file(f"file://{tmp_path}/a.whl", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"content"
    with pytest.raises(BuildNotFound):
        download_file(f"file://{tmp_path}/b.whl", tmp_path / "copy")

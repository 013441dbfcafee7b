"""What is told of the log of a build: it may name an address with a login or a signature in it."""

import pytest

from torchbenchmark.builds import installation
from torchbenchmark.builds.workshop import last_lines

SECRETS = [
    "https://me:hunter2@host/simple/torch/",
    "https://hunter2@host/simple/",
    "https://me:p@hunter2@host/x",
    "https://bucket.s3.host/torch.whl?X-Amz-Credential=A&X-Amz-Signature=hunter2",
    "https://host/torch.whl?token=hunter2#sha256=ab",
]


@pytest.mark.parametrize("address", SECRETS)
def test_no_line_of_a_log_that_is_told_holds_a_login_or_a_signature(tmp_path, address):
    log = tmp_path / "log"
    log.write_text(f"Looking in indexes: {address}\nERROR: HTTP error 403 while getting {address} (from {address})\n")
    for told in (*last_lines(log), installation._last_lines(log)):
        assert (
            "hunter2" not in told
            and "host/" in told
            and told.startswith("ERROR: HTTP error 403 while getting https://")
        )


def test_an_address_without_any_stays_as_it_is(tmp_path):
    log = tmp_path / "log"
    log.write_text("ERROR: no torch in https://host/a?, mail me@host\n")
    assert last_lines(log) == ["ERROR: no torch in https://host/a?, mail me@host"]

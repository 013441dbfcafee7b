"""The text that names a build: parsed and written back the same, and what is no address refused in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbenchmark.builds.build_address import PROVIDERS, is_local, parse_address, split_overrides
from torchbenchmark.builds.url import UrlAddress
from torchbenchmark.errors import BenchmarkError

SHA = "1a2b3c4d" * 5
CANONICAL = [
    "venv:/opt/torch 2.12/bin/python",
    "venv:../env",
    "venv:python3.12",
    "release:torch==2.12.0",
    "release:torch==2.12.0+cu130",
    "release:torchao==0.15.0,torch==2.13.0",
    "nightly:https://example.org/nightly/cu130@2026-11-20",
    "nightly:https://example.org/nightly/cu130@latest",
    "url:https://example.org/torch-2.14.0.dev{yyyymmdd}%2Bcpu-{python}-{python}-linux_x86_64.whl@2026-11-20",
    "url:https://example.org/{date}/torch-2.14.0-py3-none-any.whl@2026-11-20",
    f"url:https://example.org/artifacts/{{sha}}/wheels.zip@{SHA}",
    "url:file:///bucket/torch-2.14.0-py3-none-any.whl",
    f"url:https://example.org/a@b/torch-2.14.0-py3-none-any.whl#sha256={'0' * 64}",
    f"git:/src/pytorch@{SHA}",
    "git:../pytorch@feature/faster",
    f"git:https://example.org/pytorch.git@{SHA}",
    "git:ssh://git@example.org/pytorch.git@v2.12.0",
    "git:git@example.org:pytorch/pytorch.git@pull/123/head",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_an_address_is_written_back_as_it_was_read(text):
    address = parse_address(text)
    assert str(address) == text
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("short", "meant"),
    [
        ("/opt/torch/bin/python", "venv:/opt/torch/bin/python"),
        ("envs/torch", "venv:envs/torch"),
        (".", "venv:."),
        ("~/env", "venv:~/env"),
        ("2.12", "release:torch==2.12"),
        ("v2.12.0", "release:torch==2.12.0"),
        ("release:2.12.0", "release:torch==2.12.0"),
        ("Torch_Vision==0.28.0", "release:torch-vision==0.28.0"),
    ],
)
def test_a_path_and_a_version_need_no_provider(short, meant):
    assert str(parse_address(short)) == meant


def test_a_bare_version_is_one_of_the_subject():
    assert str(parse_address("0.15.0", "torchao")) == "release:torchao==0.15.0"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("release:torch==2.12.0\n", "line break"),
        ("venv:/a\nb", "line break"),
        ("venv:/a\x1b[31m", "control character"),
        (" 2.12.0", "space at an end"),
        ("x" * 1001, "longer than 1000"),
        ("pytorch", "names no build"),
        ("2026-11-20", "names no build"),
        ("-c", "names no build"),
        ("--help/x", "begins with a dash"),
        ("venv:", "names no path"),
        ("venv:-c", "begins with a dash"),
        ("ftp:x", "no provider 'ftp'"),
        ("https://example.org/torch.whl", "no provider 'https'"),
        ("release:torch", "not NAME==VERSION"),
        ("release:torch==", "not NAME==VERSION"),
        ("release:torch==2.*", "not NAME==VERSION"),
        ("release:torch==2.12.0; import os", "not NAME==VERSION"),
        ("release:--index-url==1", "begins with a dash"),
        ("release:torch==2.12.0,--pre==1", "not NAME==VERSION"),
        ("release:../torch==1", "not NAME==VERSION"),
        ("release:torch==1,torch==2", "stands twice"),
        ("nightly:https://example.org/nightly", "must end with @latest"),
        ("nightly:https://example.org/nightly@20261120", "must end with @latest"),
        ("nightly:https://example.org/nightly@2026-02-30", "must end with @latest"),
        ("url:https://example.org/t-{date}.whl", "must end with @ and one"),
        ("url:https://example.org/t-{date}.whl@../../etc", "must end with @ and one"),
        ("url:https://example.org/t-{sha}.whl@HEAD", "7 to 64 hexadecimal digits"),
        ("url:https://example.org/{sha}/{date}.whl@1a2b3c4", "a date and a commit"),
        ("url:https://example.org/{secret}.whl", "{secret} is not known"),
        ("url:https://example.org/{0.__class__}.whl", "is not known"),
        ("url:https://example.org/{date.whl", "brace"),
        ("url:https://example.org/../torch.whl", "../"),
        ("url:https://example.org/torch.tar.gz", "must name a .whl"),
        ("url:https://example.org/torch.whl#md5=0", "after #"),
        ("url:https://example.org/torch.whl?token=hunter2", "query"),
        ("url:s3://bucket/torch.whl", "must begin with https://"),
        ("url:-o/torch.whl", "begins with a dash"),
        ("git:/src/pytorch", "must end with @"),
        ("git:/src/pytorch@", "no commit, branch or tag"),
        ("git:/src/pytorch@-x", "no commit, branch or tag"),
        ("git:/src/pytorch@main..next", "no commit, branch or tag"),
        ("git:/src/pytorch@main@{1}", "no commit, branch or tag"),
        ("git:/src/pytorch@HEAD~1", "no commit, branch or tag"),
        ("git:git@example.org:pytorch/pytorch", "no commit, branch or tag"),
        ("git:@main", "names no repository"),
        ("git:--upload-pack=x@main", "begins with a dash"),
        ("git:ext::sh -c id@main", "is no repository"),
        ("git:ftp://example.org/x@main", "must begin with"),
        ("git:ssh://-oProxyCommand=id/x@main", "names no host"),
    ],
)
def test_what_is_no_address_is_refused_with_the_reason(text, said):
    with pytest.raises(BenchmarkError) as error:
        parse_address(text)
    assert said in str(error.value)
    assert str(error.value).startswith("build address")
    assert "\n" not in str(error.value) and "\x1b" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "git:https://someone:hunter2@example.org/pytorch.git@main",
        "git:https://hunter2@example.org/pytorch.git@main",
        "git:ssh://git:hunter2@example.org/pytorch.git@main",
        "url:https://someone:hunter2@example.org/torch.whl",
        "url:https://hunter2@example.org/t-{date}.whl@2026-11-20",
        "nightly:https://someone:hunter2@example.org/nightly@latest",
        "git:https://someone:hunter2@[/pytorch.git@main",
        "url:https://someone:hunter2@[/torch.whl",
        "url:https://someone:hunter2@example.org/{oops}.whl",
        "git+https://someone:hunter2@example.org/x",
    ],
)
def test_credentials_in_an_address_are_refused_and_not_repeated(text):
    with pytest.raises(BenchmarkError) as error:
        parse_address(text)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("text", CANONICAL)
def test_overrides_follow_an_address_and_are_no_part_of_it(text):
    overrides = (("backend", "inductor"), ("env.TORCH_LOGS", "a@b.c"), ("batch_size", ""))
    line = text + "".join(f"@{key}={value}" for key, value in overrides)
    assert split_overrides(line) == (text, overrides)
    assert split_overrides(text) == (text, ())
    with pytest.raises(BenchmarkError, match="holds @key="):
        parse_address(line)


@given(st.text(max_size=60), st.sampled_from(["", *(f"{name}:" for name in PROVIDERS)]))
def test_any_text_is_an_address_that_is_written_back_or_is_refused(text, prefix):
    try:
        address = parse_address(prefix + text)
    except BenchmarkError:
        return
    assert parse_address(str(address)) == address


def test_what_reads_files_of_this_machine_is_known_as_local():
    local = {text for text in CANONICAL if is_local(parse_address(text))}
    assert local == {
        *(text for text in CANONICAL if text.startswith("venv:")),
        "url:file:///bucket/torch-2.14.0-py3-none-any.whl",
        f"git:/src/pytorch@{SHA}",
        "git:../pytorch@feature/faster",
    }


def test_a_template_is_filled_with_its_date_and_the_python():
    address = parse_address("url:https://example.org/{date}/t-{yyyymmdd}-{python}.whl@2026-11-20")
    assert isinstance(address, UrlAddress)
    assert address.url("3.12") == "https://example.org/2026-11-20/t-20261120-cp312.whl"

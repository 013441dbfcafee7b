"""Which wheels a date, or `latest`, means; and that no other date is ever taken in silence."""

import base64
from datetime import date

import pytest
from pydantic import ValidationError

from torchbenchmark.builds import simple_index
from torchbenchmark.builds.nightly_index import NightlyBuild, resolve
from torchbenchmark.builds.simple_index import read_page
from torchbenchmark.builds.target import Target, target_of_version
from torchbenchmark.errors import BenchmarkError

LINUX = Target(
    "3.12.3",
    (
        "cp312-cp312-manylinux_2_28_x86_64",
        "cp312-cp312-manylinux_2_17_x86_64",
        "cp312-cp312-linux_x86_64",
        "py3-none-any",
    ),
)
FITS = "cp312-cp312-manylinux_2_28_x86_64"
TODAY = date(2026, 11, 28)


@pytest.fixture(params=["HTML", "JSON"])
def either(index, request):
    index.as_json = request.param == "JSON"
    return index


def pins(index, *, today=TODAY, told=None, **keys):
    build = NightlyBuild(index=index.address, **keys)
    return resolve(build, LINUX, today, (told if told is not None else []).append)


def test_a_date_means_the_wheels_of_that_date_for_this_interpreter(either):
    for night in ("20261125", "20261126", "20261127"):
        for tag in (FITS, "cp311-cp311-manylinux_2_28_x86_64", "cp312-cp312-win_amd64"):
            either.add("torch", f"2.14.0.dev{night}+cu130", tag)
        either.add("torchvision", f"0.29.0.dev{night}+cu130", FITS)
    pin = pins(either, packages=["torch", "torchvision"], date="2026-11-26")
    assert str(pin) == "torch==2.14.0.dev20261126+cu130 torchvision==0.29.0.dev20261126+cu130"
    assert pin.subject.file == f"torch-2.14.0.dev20261126+cu130-{FITS}.whl"
    assert pin.subject.sha256 == either.packages["torch"][3].told_sha256
    assert (pin.index, pin.date, pin.python) == (either.address, date(2026, 11, 26), "3.12")


def test_latest_is_the_newest_date_that_all_packages_have(either):
    told = []
    for night in ("20261126", "20261127", "20261128"):
        either.add("torch", f"2.14.0.dev{night}+cu130", FITS)
    for night in ("20261125", "20261127"):
        either.add("torchvision", f"0.29.0.dev{night}+cu130", FITS)
    pin = pins(either, packages=["torch", "torchvision"], told=told)
    assert pin.date == date(2026, 11, 27)
    assert told == [
        "2026-11-27 is the newest date that all packages have a wheel of "
        "(newest that fit: torch 2026-11-28, torchvision 2026-11-27)"
    ]
    told.clear()
    assert pins(either, told=told).date == date(2026, 11, 28)
    assert told == []


def test_a_withdrawn_wheel_is_not_taken(either):
    either.add("torch", "2.14.0.dev20261126+cu130", FITS)
    either.add("torch", "2.14.0.dev20261127+cu130", FITS, yanked=True)
    told = []
    assert pins(either, told=told).date == date(2026, 11, 26)
    assert told == ["torch of 2026-11-27 was withdrawn (yanked)"]
    with pytest.raises(BenchmarkError, match=r"torch of 2026-11-27 was withdrawn \(yanked\)"):
        pins(either, date="2026-11-27")


def test_of_several_versions_of_a_date_the_newest_is_taken_and_of_its_wheels_the_one_that_fits_best(either):
    either.add("torch", "2.14.0.dev20261127+cu130", FITS)
    either.add("torch", "2.15.0.dev20261127+cu130", "cp312-cp312-linux_x86_64")
    either.add("torch", "2.15.0.dev20261127+cu130", FITS)
    either.add("torch", "2.15.0.dev20261127+cu130", "py3-none-any")
    assert pins(either).subject.file == f"torch-2.15.0.dev20261127+cu130-{FITS}.whl"


def test_builds_for_several_accelerators_on_one_page_are_not_chosen_between(either):
    either.add("torch", "2.14.0.dev20261127+cpu", FITS)
    either.add("torch", "2.14.0.dev20261127+cu130", FITS)
    with pytest.raises(BenchmarkError, match=r"torch 2\.14\.0\.dev20261127 is there as cpu, cu130.*name the index of"):
        pins(either)


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("2026-11-26", "the nearest are 2026-11-25 and 2026-11-27"),
        ("2026-11-01", "the nearest is 2026-11-24"),
        ("2026-12-01", "the nearest is 2026-11-27"),
    ],
)
def test_a_date_that_is_not_there_is_an_error_that_names_the_nearest(either, asked, near):
    for night in ("20261124", "20261125", "20261127"):
        either.add("torch", f"2.14.0.dev{night}+cu130", FITS)
    with pytest.raises(BenchmarkError, match=rf"has no wheel of torch of {asked}; {near}$"):
        pins(either, date=asked)


def test_a_date_that_one_of_the_packages_lacks_is_an_error_that_names_it(either):
    for night in ("20261126", "20261127"):
        either.add("torch", f"2.14.0.dev{night}+cu130", FITS)
    either.add("torchvision", "0.29.0.dev20261126+cu130", FITS)
    with pytest.raises(BenchmarkError, match="has no wheel of torchvision of 2026-11-27; the nearest is 2026-11-26"):
        pins(either, packages=["torch", "torchvision"], date="2026-11-27")


@pytest.mark.parametrize("when", ["latest", "2026-11-27"])
def test_a_build_for_other_machines_only_is_an_error_that_says_which(either, when):
    either.add("torch", "2.14.0.dev20261127+cu130", "cp311-cp311-manylinux_2_28_x86_64")
    either.add("torch", "2.14.0.dev20261127+cu130", "cp312-cp312-win_amd64")
    with pytest.raises(BenchmarkError) as error:
        pins(either, date=when)
    assert "has no wheel for Python 3.12 (cp312-cp312-manylinux_2_28_x86_64)" in str(error.value)
    assert "there are cp311-cp311-manylinux_2_28_x86_64, cp312-cp312-win_amd64" in str(error.value)
    assert "2026-11-27" in str(error.value)


def test_a_wheel_that_asks_for_another_python_does_not_fit(either):
    either.add("torch", "2.14.0.dev20261127+cu130", FITS, requires_python=">=3.13")
    with pytest.raises(BenchmarkError, match=r"no wheel for Python 3\.12 .* those for it require Python >=3\.13"):
        pins(either)


def test_last_weeks_build_is_not_tonights(either):
    either.add("torch", "2.14.0.dev20261124+cu130", FITS)
    either.add("torch", "2.14.0.dev20261127+cu130", "cp313-cp313-manylinux_2_28_x86_64")
    with pytest.raises(BenchmarkError) as error:
        pins(either)
    assert "the newest build that is whole is of 2026-11-24, 4 days old, and `max_age_days` is 3" in str(error.value)
    assert "torch of 2026-11-27 has no wheel for Python 3.12" in str(error.value)
    assert "there are cp313-cp313" in str(error.value)
    assert pins(either, max_age_days=4).date == date(2026, 11, 24)
    assert pins(either, today=date(2026, 11, 27)).date == date(2026, 11, 24)
    assert pins(either, date="2026-11-24").date == date(2026, 11, 24)


def test_a_package_that_lags_makes_the_whole_build_too_old(either):
    either.add("torch", "2.14.0.dev20261120+cu130", FITS)
    either.add("torch", "2.14.0.dev20261127+cu130", FITS)
    either.add("torchvision", "0.29.0.dev20261120+cu130", FITS)
    with pytest.raises(BenchmarkError, match=r"of 2026-11-20, 8 days old.*torch 2026-11-27, torchvision 2026-11-20"):
        pins(either, packages=["torch", "torchvision"])


def test_packages_without_a_common_date_are_told(either):
    either.add("torch", "2.14.0.dev20261127+cu130", FITS)
    either.add("torchvision", "0.29.0.dev20261126+cu130", FITS)
    with pytest.raises(BenchmarkError, match="no date of which all packages have a wheel; the newest are torch 2026-1"):
        pins(either, packages=["torch", "torchvision"])


def test_a_wheel_of_the_future_is_not_the_latest(either):
    told = []
    either.add("torch", "2.14.0.dev20261127+cu130", FITS)
    either.add("torch", "2.14.0.dev20991231+cu130", FITS)
    assert pins(either, told=told).date == date(2026, 11, 27)
    assert told == ["torch has wheels of the future (2099-12-31), which are left out"]


def test_an_index_of_releases_is_not_one_of_nightlies(either):
    either.add("torch", "2.13.0", FITS)
    either.add("torch", "2.14.0.dev3", FITS)
    either.add("torch", "2.14.0.dev20261399", FITS)
    with pytest.raises(BenchmarkError, match=r"has no dated wheel \(\.devYYYYMMDD\) of torch"):
        pins(either)


def test_an_index_without_the_package_is_told(either):
    with pytest.raises(BenchmarkError, match=r"http://127\.0\.0\.1:\d+: has no package torch \(HTTP 404"):
        pins(either)


def test_an_index_that_does_not_answer_is_told(index):
    with pytest.raises(
        BenchmarkError, match=r"http://127\.0\.0\.1:9/torch/: the index does not answer \(Connection re"
    ):
        resolve(NightlyBuild(index="http://127.0.0.1:9"), LINUX, TODAY)


@pytest.mark.parametrize(("status", "attempts"), [(503, 3), (429, 3), (400, 1), (403, 1)])
def test_what_may_pass_is_tried_again_and_then_told(index, status, attempts):
    index.raw["/torch/"] = (status, "text/html", b"")
    with pytest.raises(BenchmarkError, match=f"HTTP {status}"):
        pins(index)
    assert index.asked == ["/torch/"] * attempts


def test_an_index_that_stumbles_once_is_read(index, monkeypatch):
    index.add("torch", "2.14.0.dev20261127+cu130", FITS)
    answer = index.answer
    monkeypatch.setattr(
        index, "answer", lambda path: answer(path) if len(index.logins) > 1 else (502, "text/html", b"")
    )
    assert pins(index).date == date(2026, 11, 27)


def test_the_login_of_netrc_is_used_and_goes_to_no_other_host(index, tmp_path, monkeypatch):
    index.add("torch", "2.14.0.dev20261127+cu130", FITS)
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login someone password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    pins(index)
    assert index.logins == ["Basic " + base64.b64encode(b"someone:secret").decode()]
    index.logins.clear()
    index.raw["/moved/torch/"] = (
        302,
        "text/html",
        f"{index.address.replace('127.0.0.1', 'localhost')}/torch/".encode(),
    )
    resolve(NightlyBuild(index=f"{index.address}/moved"), LINUX, TODAY)
    assert index.logins[0] is not None and index.logins[1] is None


HOSTILE = b"""
<html><body><a href="/files/torch-2.14.0.dev20261127%2Bcu130-cp312-cp312-manylinux_2_28_x86_64.whl">good</a>
<A class='x' HREF='/files/torch-2.14.0.dev20261126-py3-none-any.whl' data-requires-python=">=3.12"
   >raw, over two lines</A><a href="">none</a><a>none</a><a href="http://[broken">none</a>
<a href="/files/torch-2.14.0.dev20261128%0a%1b[31m-cp312-cp312-manylinux_2_28_x86_64.whl">control</a>
<a href="/files/torch-2.14.0.dev20261128-cp312-cp312-%3Cscript%3Ealert(1)%3C%2Fscript%3E.whl">markup</a>
<a href="/files/torchx-2.14.0.dev20261128-cp312-cp312-manylinux_2_28_x86_64.whl">another package</a>
<a href="/files/torch-2.14.0.dev20261128.tar.gz">no wheel</a>
<a href="/files/torch-2.14.0.dev20261128-a.b.c.d.e.f.g.h.i-a.b.c.d.e.f.g.h.i-a.b.c.d.e.f.whl">many tags</a>
<a href="/files/torch-%2e%2e%2f%2e%2e%2fdev20261128-cp312-cp312-manylinux_2_28_x86_64.whl">path</a>
<a href="/files/torch-2.14.0.dev20261128-cp312-cp312-manylinux_2_28_x86_64.whl" data-yanked>withdrawn</a>
<a href="/files/torch---index-url=x-cp312-cp312-manylinux_2_28_x86_64.whl">option</a>
<!-- <a href="/files/torch-2.14.0.dev20261128-cp312-cp312-manylinux_2_28_x86_64.whl">commented out</a> --><a href="""


def test_what_is_not_the_plain_name_of_a_wheel_of_the_package_is_left_out(index):
    index.raw["/torch/"] = (200, "text/html", HOSTILE)
    files = [wheel.file for wheel in read_page(index.address, "torch")]
    assert files == [
        "torch-2.14.0.dev20261127+cu130-cp312-cp312-manylinux_2_28_x86_64.whl",
        "torch-2.14.0.dev20261126-py3-none-any.whl",
        "torch-2.14.0.dev20261128-cp312-cp312-manylinux_2_28_x86_64.whl",
    ]
    assert pins(index).subject.sha256 is None


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("text/html", b"<h1>Please log in</h1>", "lists no wheel of torch"),
        ("text/html", b"\xff\xfe\x00<", "lists no wheel of torch"),
        ("application/vnd.pypi.simple.v1+json", b"{", "no page of a simple package index"),
        ("application/vnd.pypi.simple.v1+json", b"[]", "no page of a simple package index"),
        ("application/vnd.pypi.simple.v1+json", b'{"files": 3}', "no page of a simple package index"),
        ("application/vnd.pypi.simple.v1+json", b"[" * 100_000, "no page of a simple package index"),
        ("application/vnd.pypi.simple.v1+json", b'{"files": [3, {"filename": 4}, {}]}', "lists no wheel of torch"),
        ("application/vnd.pypi.simple.v1+json", b'{"meta": {"api-version": "2.0"}, "files": []}', "version '2.0'"),
    ],
)
def test_a_page_that_is_none_is_told(index, kind, content, said):
    index.raw["/torch/"] = (200, kind, content)
    with pytest.raises(BenchmarkError, match=f"/torch/: .*{said}"):
        pins(index)


def test_a_page_without_end_is_not_read_to_it(index, monkeypatch):
    monkeypatch.setattr(simple_index, "LARGEST_PAGE", 2**20)
    index.raw["/torch/"] = (200, "text/html", b" " * (2**20 + 1))
    with pytest.raises(BenchmarkError, match="the page is larger than 1 MiB"):
        pins(index)


@pytest.mark.parametrize(
    "content", [b'<a href="', b"<", b"<!--", b"<a ", b"<a '\"", b"<a href=", b'<a b="c" ', b"<!--><a>"]
)
@pytest.mark.parametrize("end", [b"", b">", b'">', b"'>"])
def test_a_page_of_what_is_never_closed_is_read_in_linear_time(index, content, end):
    """Python 3.11.7's own parser takes half a minute for 64 KiB of the first of these."""
    index.raw["/torch/"] = (200, "text/html", content * (2**20 // len(content)) + end)
    with pytest.raises(BenchmarkError, match="lists no wheel of torch"):
        read_page(index.address, "torch")


def test_a_page_of_too_many_files_is_refused(index, monkeypatch):
    monkeypatch.setattr(simple_index, "MOST_FILES", 2)
    for night in ("20261125", "20261126"):
        index.add("torch", f"2.14.0.dev{night}", FITS)
    assert len(read_page(index.address, "torch")) == 2
    index.add("torch", "2.14.0.dev20261127", FITS)
    with pytest.raises(BenchmarkError, match="lists more than 2 files"):
        read_page(index.address, "torch")


def test_another_python_than_this_can_be_planned_for(index):
    index.add("torch", "2.14.0.dev20261127+cu130", "cp313-cp313-manylinux_2_17_x86_64")
    index.add("torch", "2.14.0.dev20261127+cu130", "cp312-cp312-manylinux_2_17_x86_64", requires_python=">=3.12.2")
    other = target_of_version("3.12")
    assert {"cp312-cp312-linux_x86_64", "py3-none-any"} <= set(other.tags)
    pin = resolve(NightlyBuild(index=index.address, python="3.12"), today=TODAY)
    assert (pin.python, pin.subject.file) == (
        "3.12",
        "torch-2.14.0.dev20261127+cu130-cp312-cp312-manylinux_2_17_x86_64.whl",
    )


@pytest.mark.parametrize(
    "address",
    [
        "https://someone:hunter2@example.org/simple",
        "https://hunter2@example.org/simple",
        "https://example.org/simple?token=hunter2",
        "https://example.org/simple#hunter2",
        "https://some one:hunter2@[::1/simple",
    ],
)
@pytest.mark.parametrize("key", ["index", "extra_index"])
def test_credentials_in_an_address_are_refused_and_not_repeated(key, address):
    with pytest.raises(ValidationError) as error:
        NightlyBuild(**{"index": "https://example.org", key: address})
    assert "hunter2" not in error.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    "keys",
    [
        {"index": "example.org/simple"},
        {"index": "file:///srv/simple"},
        {"index": "https:///simple"},
        {"index": "https://example.org/a b"},
        {"index": "https://example.org", "date": "yesterday"},
        {"index": "https://example.org", "date": 20261127},
        {"index": "https://example.org", "date": "20261127"},
        {"index": "https://example.org", "date": "2026-13-01"},
        {"index": "https://example.org", "packages": []},
        {"index": "https://example.org", "packages": ["torch", "Torch"]},
        {"index": "https://example.org", "packages": ["--index-url=x"]},
        {"index": "https://example.org", "packages": ["torch==2"]},
        {"index": "https://example.org", "requirements": ["timm"]},
        {"index": "https://example.org", "requirements": ["timm>=1"]},
        {"index": "https://example.org", "requirements": ["timm==1.*"]},
        {"index": "https://example.org", "requirements": ["timm @ https://example.org/timm.whl"]},
        {"index": "https://example.org", "requirements": ["--pre"]},
        {"index": "https://example.org", "python": "3.12.1"},
        {"index": "https://example.org", "python": 3.1},
        {"index": "https://example.org", "max_age_days": -1},
    ],
)
def test_a_key_that_means_nothing_is_refused(keys):
    with pytest.raises(ValidationError):
        NightlyBuild(**keys)


def test_a_date_may_be_one_of_yaml_or_quoted():
    for given in (date(2026, 11, 27), "2026-11-27"):
        assert NightlyBuild(index="https://example.org", date=given).date == date(2026, 11, 27)


def test_a_configuration_allows_only_what_it_could_have_been_resolved_to(index):
    index.add("torch", "2.14.0.dev20261127+cu130", FITS)
    pin = pins(index)
    allowed = {"index": index.address}
    assert NightlyBuild(**allowed).allows(pin)
    assert NightlyBuild(**allowed, date="2026-11-27", python="3.12", max_age_days=0).allows(pin)
    for other in (
        {"index": "https://example.org"},
        {"date": "2026-11-26"},
        {"python": "3.11"},
        {"packages": ["torch", "torchvision"]},
        {"requirements": ["timm==1.0.31"]},
        {"extra_index": "https://example.org"},
    ):
        assert not NightlyBuild(**{**allowed, **other}).allows(pin)

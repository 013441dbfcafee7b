"""A build by its address: ready, made once, made anew if damaged, and failing at once where it has failed before."""

import io
import os
import random
import sys
import zipfile
from pathlib import Path

import pytest
from package_index import tiny_torch, wheel

from torchbenchmark.builds import url as url_provider
from torchbenchmark.builds.build_address import parse_address
from torchbenchmark.builds.build_errors import BuildFailed, BuildNotFound, BuildUnavailable
from torchbenchmark.builds.cache import lease_of
from torchbenchmark.builds.download import Downloaded
from torchbenchmark.builds.presence import why_absent
from torchbenchmark.builds.provide import ask, exact_address, named_build, provide
from torchbenchmark.builds.settings import UrlSettings
from torchbenchmark.environment import inspect_interpreter
from torchbenchmark.errors import BenchmarkError

NIGHT = "2026-11-20"


def held(interpreter: Path) -> dict[str, str]:
    return inspect_interpreter(interpreter).distributions


def torch_wheel(version: str, requires=("numpy",), files=None) -> tuple[str, bytes]:
    files = files or tiny_torch(version)
    return f"torch-{version}-py3-none-any.whl", wheel("torch", version, "py3-none-any", files, requires)


def offer(index, path: str, content: bytes) -> str:
    index.raw[path] = (200, "application/octet-stream", content)
    return f"{index.address}{path}"


def leftovers(cache) -> list[str]:
    return [path.name for path in (cache.folder / "work").iterdir()]


def test_a_release_is_installed_with_its_dependencies_and_numpy_and_then_found_in_the_cache(
    index, cache, settings, monkeypatch, tmp_path
):
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    index.add("torch", "2.12.0", requires=("filelock",))
    index.add("torch", "2.13.0")
    index.add("filelock", "3.0")
    with provide("2.12.0", cache, settings) as build:
        assert build.address == "release:torch==2.12.0"
        distributions = held(build.interpreter)
        expected = {"torch": "2.12.0", "filelock": "3.0", "numpy": "2.4.6"}
        assert {name: distributions.get(name) for name in expected} == expected
        (own,) = build.wheels
        assert (own.file, own.sha256) == (index.packages["torch"][0].name, index.packages["torch"][0].told_sha256)
        assert cache.wheel_path(own).read_bytes() == index.packages["torch"][0].content
    assert not (tmp_path / "elsewhere").exists() and leftovers(cache) == []

    index.asked.clear()
    with provide("release:torch==2.12.0", cache, settings) as again:
        assert again.interpreter == build.interpreter
    assert index.asked == []

    # What was removed to make room is not needed while the environment stands.
    cache.wheel_path(own).unlink()
    with provide("2.12.0", cache, settings):
        pass
    assert index.asked == []


def test_a_version_that_is_not_there_is_not_found_and_found_once_it_is(index, cache, settings):
    index.add("torch", "2.12.0")
    with pytest.raises(BuildNotFound, match=r"has no torch==2\.13\.0"):
        provide("2.13.0", cache, settings)
    index.add("torch", "2.13.0")
    with provide("2.13.0", cache, settings) as build:
        assert held(build.interpreter)["torch"] == "2.13.0"


def test_an_index_that_does_not_answer_is_not_remembered_against_the_build(index, cache, settings):
    index.add("torch", "2.12.0")
    index.raw["/torch/"] = (503, "text/html", b"busy")
    with pytest.raises(BuildUnavailable):
        provide("2.12.0", cache, settings)
    assert cache.failures() == []
    del index.raw["/torch/"]
    provide("2.12.0", cache, settings).close()


def test_what_models_need_is_installed_beside_though_it_would_not_accept_the_torch(index, cache, settings):
    """torchvision fits one torch only; the lock of the environment is the same for both builds of a comparison."""
    index.add("torch", "2.12.0")
    index.add("torchvision", "0.28.0", requires=("torch==2.13.0",))
    index.add("tqdm", "4.0")
    settings = settings.model_copy(
        update={"requirements": ("numpy==2.4.6", "tqdm==4.0"), "without_dependencies": ("torchvision==0.28.0",)}
    )
    with provide("2.12.0", cache, settings) as build:
        distributions = held(build.interpreter)
    assert {name: distributions[name] for name in ("torch", "torchvision", "tqdm")} == {
        "torch": "2.12.0",
        "torchvision": "0.28.0",
        "tqdm": "4.0",
    }


def test_builds_with_other_requirements_are_other_environments_of_the_same_wheels(index, cache, settings):
    index.add("torch", "2.12.0")
    index.add("tqdm", "4.0")
    richer = settings.model_copy(update={"requirements": (*settings.requirements, "tqdm==4.0")})
    with provide("2.12.0", cache, settings) as plain, provide("2.12.0", cache, richer) as rich:
        assert plain.interpreter != rich.interpreter
        assert plain.wheels == rich.wheels
        assert "tqdm" not in held(plain.interpreter) and held(rich.interpreter)["tqdm"] == "4.0"


def test_a_subject_other_than_torch_is_built_with_the_torch_that_the_address_names(index, cache, settings):
    index.add("torch", "2.13.0")
    index.add("torchao", "0.15.0", files={"torchao/__init__.py": "", "torchao/version.py": ""})
    with provide("release:torchao==0.15.0,torch==2.13.0", cache, settings, subject="torchao") as build:
        found = inspect_interpreter(build.interpreter, "torchao")
        assert build.holds == found
    with provide("release:torchao==0.15.0,torch==2.13.0", cache, settings, subject="torchao") as again:
        assert again.holds == found
    assert (found.build.subject, found.build.version) == ("torchao", "0.15.0")
    with pytest.raises(BuildFailed, match="and no torchaudio, which is the subject"):
        provide("release:torchao==0.15.0,torch==2.13.0", cache, settings, subject="torchaudio")


def test_a_night_is_taken_from_its_index_and_latest_means_a_date(index, cache, settings):
    index.add("torch", "2.14.0.dev20261120+cpu")
    index.add("torch", "2.15.0.dev20261121+cpu")
    address = f"nightly:{index.address}@{NIGHT}"
    with provide(address, cache, settings) as build:
        assert held(build.interpreter)["torch"] == "2.14.0.dev20261120+cpu"
        assert build.address == address
    index.asked.clear()
    provide(address, cache, settings).close()
    assert index.asked == []
    with pytest.raises(BuildNotFound, match="has no wheel of torch of 2026-11-19; the nearest is 2026-11-20"):
        provide(f"nightly:{index.address}@2026-11-19", cache, settings)
    old = settings.model_copy(update={"nightly": settings.nightly.model_copy(update={"max_age_days": 100_000})})
    assert exact_address(f"nightly:{index.address}@latest", cache, old) == f"nightly:{index.address}@2026-11-21"


def test_a_night_whose_wheel_is_not_the_one_of_its_page_is_refused(index, cache, settings):
    index.add("torch", "2.14.0.dev20261120+cpu", sha256="0" * 64)
    with pytest.raises(
        BuildFailed, match=r"pip could not get torch==2\.14\.0\.dev20261120\+cpu.*DO NOT MATCH THE HASHES"
    ):
        provide(f"nightly:{index.address}@{NIGHT}", cache, settings)
    assert cache.environments() == [] and cache.sources() == []


def test_a_wheel_at_an_address_with_a_date_is_got_once(index, cache, settings):
    name, content = torch_wheel("2.14.0")
    offer(index, f"/bucket/20261120/{name}", content)
    address = f"url:{index.address}/bucket/{{yyyymmdd}}/{name}@{NIGHT}"
    with provide(address, cache, settings) as build:
        assert held(build.interpreter)["torch"] == "2.14.0"
        assert build.address == address
    index.asked.clear()
    provide(address, cache, settings).close()
    assert index.asked == []
    with pytest.raises(BuildNotFound, match=r"20261121.*is not there \(HTTP 404\)"):
        provide(address.replace(NIGHT, "2026-11-21"), cache, settings)


def test_an_address_without_date_is_asked_again_and_two_addresses_of_one_wheel_share_its_environment(
    index, cache, settings
):
    name, content = torch_wheel("2.14.0")
    offer(index, f"/today/{name}", content)
    offer(index, f"/copy/{name}", content)
    with provide(f"url:{index.address}/today/{name}", cache, settings) as build:
        pass
    with provide(f"url:{index.address}/copy/{name}", cache, settings) as copy:
        assert copy.interpreter == build.interpreter
    offer(index, f"/today/{name}", torch_wheel("2.14.0", requires=("numpy", "filelock"))[1])
    index.add("filelock", "3.0")
    with provide(f"url:{index.address}/today/{name}", cache, settings) as other:
        assert other.interpreter != build.interpreter
        assert "filelock" in held(other.interpreter)


def test_an_address_that_is_asked_again_and_answers_that_nothing_changed_is_not_got_again(
    index, cache, settings, tmp_path, monkeypatch
):
    asked = []

    def answer(url, path, etag=None):
        asked.append(etag)
        if etag == '"1"':
            return Downloaded(changed=False, etag=etag)
        path.write_bytes(content)
        return Downloaded(changed=True, etag='"1"')

    name, content = torch_wheel("2.14.0")
    monkeypatch.setattr(url_provider, "download_file", answer)
    address = f"url:https://example.org/{name}"
    with provide(address, cache, settings) as build:
        (own,) = build.wheels
    provide(address, cache, settings).close()
    assert asked == [None, '"1"']
    # A wheel that was damaged meanwhile is got again all the same.
    cache.wheel_path(own).write_bytes(bytes(len(content)))
    build.interpreter.unlink()
    provide(address, cache, settings).close()
    assert asked == [None, '"1"', '"1"', None]
    assert cache.wheel_path(own).read_bytes() == content


def test_an_artifact_of_a_ci_is_a_zip_of_wheels_named_by_a_commit(index, cache, settings, tmp_path):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        name, content = torch_wheel("2.14.0a0+git1a2b3c4")
        opened.writestr(f"dist/{name}", content)
        opened.writestr("../../escaped.whl", b"not inside")
        opened.writestr("notes.txt", "hello")
    (tmp_path / "1a2b3c4").mkdir()
    (tmp_path / "1a2b3c4" / "wheels.zip").write_bytes(archive.getvalue())
    address = f"url:file://{tmp_path}/{{sha}}/wheels.zip@1a2b3c4"
    with pytest.raises(BuildFailed, match="not the name of a wheel"):
        provide(address, cache, settings)
    assert not (tmp_path / "escaped.whl").exists()

    with zipfile.ZipFile(tmp_path / "1a2b3c4" / "wheels.zip", "w") as opened:
        opened.writestr(f"dist/{name}", content)
    with provide(address, cache, settings, retry=True) as build:
        assert held(build.interpreter)["torch"] == "2.14.0a0+git1a2b3c4"
    with pytest.raises(BuildNotFound, match="is not there"):
        provide(address.replace("@1a2b3c4", "@1a2b3c5"), cache, settings)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_a_build_that_failed_however_it_is_damaged(tmp_path, compression):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", compression) as opened:
        opened.writestr("torch-2.14.0-py3-none-any.whl", bytes(range(256)) * 20)
    whole, rng = archive.getvalue(), random.Random(1)
    failed = 0
    for number in range(150):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        (tmp_path / "wheels.zip").write_bytes(damaged)
        try:
            url_provider._unpack(tmp_path / "wheels.zip", tmp_path / f"out{number}", "url:x")
        except BuildFailed as error:
            assert "is no archive that can be read" in str(error) or "holds too much" in str(error)
            failed += 1
    assert failed > 100


def test_an_archive_that_grows_beyond_all_bounds_is_refused_before_it_fills_the_disk(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "wheels.zip", "w", zipfile.ZIP_DEFLATED) as opened:
        for number in range(4):
            opened.writestr(f"bomb-{number}-py3-none-any.whl", bytes(2**20))
    monkeypatch.setattr(url_provider, "_LARGEST_UNPACKED", 3 * 2**20)
    with pytest.raises(BuildFailed, match="holds too much: 4 wheels, 4194304 bytes"):
        url_provider._unpack(tmp_path / "wheels.zip", tmp_path / "out", "url:x")


def test_a_wheel_that_is_not_the_one_of_the_address_never_runs_and_is_remembered(index, cache, settings, tmp_path):
    name, content = torch_wheel("2.14.0", files={"torch/__init__.py": f"open({str(tmp_path / 'ran')!r}, 'w')\n"})
    url = offer(index, f"/{name}", content)
    with pytest.raises(BuildFailed, match=r"has the SHA-256 [0-9a-f]{64}, not 0{64}") as error:
        provide(f"url:{url}#sha256={'0' * 64}", cache, settings)
    assert not error.value.remembered
    index.asked.clear()
    with pytest.raises(BuildFailed, match="remembered from") as error:
        provide(f"url:{url}#sha256={'0' * 64}", cache, settings)
    assert error.value.remembered and index.asked == []
    assert not (tmp_path / "ran").exists() and list((cache.folder / "wheels").iterdir()) == []


def test_a_file_that_is_no_wheel_fails_and_leaves_nothing(index, cache, settings):
    url = offer(index, "/torch-2.14.0-py3-none-any.whl", b"<html>sign in</html>")
    with pytest.raises(BuildFailed, match="pip could not install"):
        provide(f"url:{url}", cache, settings)
    assert list((cache.folder / "environments").iterdir()) == [] and leftovers(cache) == []


def test_a_wheel_without_the_subject_is_refused_before_anything_is_installed(index, cache, settings):
    content = wheel("torchvision", "0.28.0", "py3-none-any", {"torchvision.py": ""}, ())
    url = offer(index, "/torchvision-0.28.0-py3-none-any.whl", content)
    with pytest.raises(BuildFailed, match="gives torchvision and no torch, which is the subject"):
        provide(f"url:{url}", cache, settings)
    assert list((cache.folder / "environments").iterdir()) == []


def test_a_build_that_cannot_be_imported_is_remembered_with_its_log_until_it_is_tried_again(index, cache, settings):
    index.add("torch", "2.12.0", files={"torch/__init__.py": "raise ImportError('libcudart is missing')\n"})
    with pytest.raises(BuildFailed, match="libcudart is missing") as first:
        provide("2.12.0", cache, settings)
    assert first.value.log is not None and "install" in first.value.log.read_text()
    assert list((cache.folder / "environments").iterdir()) == [] and leftovers(cache) == []
    with pytest.raises(BuildFailed, match=r"libcudart is missing.*remembered from .*--retry tries again") as second:
        provide("2.12.0", cache, settings)
    assert second.value.remembered and second.value.log == first.value.log
    index.packages["torch"].clear()
    index.add("torch", "2.12.0")  # another content of the same version, which no honest index has
    with pytest.raises(BuildFailed, match="libcudart is missing") as third:
        provide("2.12.0", cache, settings, retry=True)
    assert not third.value.remembered
    assert [record.address for record in cache.failures()] == ["release:torch==2.12.0"]


def test_a_dependency_that_is_nowhere_is_remembered_with_the_lines_that_say_so(index, cache, settings):
    index.add("torch", "2.12.0", requires=("absent-dependency==1.0",))
    with pytest.raises(BuildFailed) as error:
        provide("2.12.0", cache, settings)
    assert any("absent-dependency==1.0" in line for line in error.value.lines)
    assert "\n" not in str(error.value)
    index.add("absent_dependency", "1.0")
    index.packages["absent-dependency"] = index.packages.pop("absent_dependency")
    with provide("2.12.0", cache, settings, retry=True) as build:
        assert held(build.interpreter)["absent-dependency"] == "1.0"
    assert cache.failures() == []


@pytest.mark.parametrize("damage", ["a file is gone", "a file is cut", "another version", "no record", "half a record"])
def test_a_damaged_build_is_made_anew(index, cache, settings, damage):
    index.add("torch", "2.12.0")
    with provide("2.12.0", cache, settings) as build:
        folder = build.interpreter.parents[1]
    (package,) = folder.rglob("site-packages/numpy.py")
    if damage == "a file is gone":
        package.unlink()
    elif damage == "a file is cut":
        package.write_text("")
    elif damage == "another version":
        (info,) = folder.rglob("torch-2.12.0.dist-info")
        info.rename(info.with_name("torch-2.99.0.dist-info"))
    elif damage == "no record":
        (folder / "environment.json").unlink()
        package.unlink()
    else:
        (folder / "environment.json").write_text('{"kind":')
        package.unlink()
    with provide("2.12.0", cache, settings) as again:
        assert again.interpreter == build.interpreter
        assert held(again.interpreter)["torch"] == "2.12.0"
    assert list(folder.rglob("site-packages/numpy.py"))


def test_a_damaged_wheel_is_got_again_before_it_is_installed(index, cache, settings):
    index.add("torch", "2.12.0")
    index.add("tqdm", "4.0")
    with provide("2.12.0", cache, settings) as build:
        (own,) = build.wheels
    path = cache.wheel_path(own)
    path.write_bytes(bytes(len(path.read_bytes())))
    richer = settings.model_copy(update={"requirements": (*settings.requirements, "tqdm==4.0")})
    with provide("2.12.0", cache, richer) as other:
        assert held(other.interpreter)["torch"] == "2.12.0"
    assert path.read_bytes() == index.packages["torch"][0].content


def test_a_damaged_build_is_not_made_anew_under_those_who_use_it(index, cache, settings):
    index.add("torch", "2.12.0")
    with provide("2.12.0", cache, settings) as build:
        next(build.interpreter.parents[1].rglob("site-packages/numpy.py")).write_text("")
        with pytest.raises(BenchmarkError, match="must be made anew and is in use"):
            provide("2.12.0", cache, settings)
        assert build.interpreter.exists()
    provide("2.12.0", cache, settings).close()


def test_an_interpreter_is_used_as_it_is_where_it_is(index, cache, settings, tmp_path):
    index.add("torch", "2.12.0")
    with provide("2.12.0", cache, settings) as made:
        (tmp_path / "link").symlink_to(made.interpreter.parents[1])
        for address in (f"{tmp_path}/link", f"venv:{tmp_path}/link/bin/python"):
            with provide(address, cache, settings) as build:
                assert build.interpreter == tmp_path / "link" / "bin" / "python"
                assert (build.address, build.wheels) == (f"venv:{tmp_path}/link/bin/python", ())
    (tmp_path / "empty").mkdir()
    with pytest.raises(BuildNotFound, match="has no bin/python"):
        provide(str(tmp_path / "empty"), cache, settings)
    with pytest.raises(BuildNotFound, match="is not there"):
        provide(f"venv:{tmp_path}/absent", cache, settings)
    with pytest.raises(BenchmarkError, match="not a usable interpreter"):
        (tmp_path / "text").write_text("no program")
        provide(f"venv:{tmp_path}/text", cache, settings)


def test_a_wheel_that_runs_code_at_the_start_of_python_sees_no_secret_of_ours(
    index, cache, settings, tmp_path, monkeypatch
):
    """A .pth file of a pull request's wheel runs whenever its interpreter starts."""
    monkeypatch.setenv("GITHUB_TOKEN", "hunter2")
    seen = tmp_path / "seen"
    spy = f"import os; open({str(seen)!r}, 'a').write(' '.join(os.environ) + chr(10))\n"
    index.add("torch", "2.12.0", files={**tiny_torch("2.12.0"), "spy.pth": spy})
    index.add("torchvision", "0.28.0")
    settings = settings.model_copy(update={"without_dependencies": ("torchvision==0.28.0",)})
    provide("2.12.0", cache, settings).close()
    provide("2.12.0", cache, settings).close()
    assert "PATH" in seen.read_text() and "GITHUB_TOKEN" not in seen.read_text()


def test_a_version_that_the_settings_of_pip_forbid_is_told_so_and_not_remembered(
    index, cache, settings, tmp_path, monkeypatch
):
    index.add("torch", "2.12.0")
    (tmp_path / "constraint.txt").write_text("torch==2.11.0\n")
    monkeypatch.setenv("PIP_CONSTRAINT", str(tmp_path / "constraint.txt"))
    with pytest.raises(
        BenchmarkError, match=r"pip is told on this machine to keep to torch==2\.11\.0 \(PIP_CONSTRAINT"
    ):
        provide("2.12.0", cache, settings)
    assert cache.failures() == []
    monkeypatch.delenv("PIP_CONSTRAINT")
    provide("2.12.0", cache, settings).close()


def test_what_is_measured_is_named_by_a_path_or_an_address_and_kept_meanwhile(index, cache, settings, monkeypatch):
    index.add("torch", "2.12.0")
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(cache.folder))
    with named_build("2.12.0", settings=settings) as interpreter:
        assert interpreter.is_relative_to(cache.folder / "environments")
        name = f"environment-{interpreter.parents[1].name}"
        with cache.unused(name) as unused:
            assert not unused
    with cache.unused(name) as unused:
        assert unused
    for path in (sys.executable, "/no/such/python"):
        with named_build(path) as interpreter:
            assert interpreter == Path(path), "looked at by who measures"
    with pytest.raises(BenchmarkError, match="no provider 'relase'"), named_build("relase:torch==2.12.0"):
        pass


def test_a_lease_is_found_by_the_interpreter_of_a_build(index, cache, settings):
    index.add("torch", "2.12.0")
    with provide("2.12.0", cache, settings) as build:
        pass
    name = f"environment-{build.interpreter.parents[1].name}"
    lease = lease_of(build.interpreter)
    assert lease is not None
    with cache.unused(name) as unused:
        assert not unused
    lease.close()
    with cache.unused(name) as unused:
        assert unused
    with provide(str(build.interpreter), cache, settings), cache.unused(name) as unused:
        assert not unused, "its path names a build of the cache too"
    assert lease_of(cache.environment_folder("0" * 64) / "bin" / "python") is None, "it was removed"
    assert lease_of(Path(sys.executable)) is None
    assert lease_of(Path(os.sep) / "python") is None


def test_a_plain_build_needs_no_torch_and_is_another_environment(index, cache, settings):
    """For a command of the user's: what it is called and what it imports is its own affair."""
    index.add("oddname", "1.2", files={"other.py": "import not_there\n"})
    plain = settings.model_copy(update={"requirements": ()})
    with provide("release:oddname==1.2", cache, plain, subject="oddname", plain=True) as build:
        assert sorted(path.name for path in build.interpreter.parent.parent.glob("lib/*/site-packages/*.py")) == [
            "other.py"
        ]
    with pytest.raises(BuildFailed, match="torch cannot be imported"):
        provide("release:oddname==1.2", cache, plain, subject="oddname")
    provide("release:oddname==1.2", cache, plain, subject="oddname", plain=True).close()


def test_wheels_of_the_same_date_come_along_and_one_that_is_missing_is_no_build(index, cache, settings):
    name, content = torch_wheel("2.14.0.dev20261120")
    other = "torchvision-0.29.0.dev20261120-py3-none-any.whl"
    template = "url:" + offer(index, f"/w/{name}", content).replace("20261120", "{yyyymmdd}")
    beside = f"{index.address}/w/{other}".replace("20261120", "{yyyymmdd}")
    richer = settings.model_copy(update={"url": UrlSettings(beside=(beside,))})
    with pytest.raises(BuildNotFound, match="torchvision"):
        provide(f"{template}@{NIGHT}", cache, richer)
    offer(index, f"/w/{other}", wheel("torchvision", "0.29.0.dev20261120", "py3-none-any", {"torchvision.py": ""}, ()))
    with provide(f"{template}@{NIGHT}", cache, richer) as build:
        assert held(build.interpreter)["torchvision"] == "0.29.0.dev20261120"
    with provide(f"{template}@{NIGHT}", cache, settings) as plain:
        assert "torchvision" not in held(plain.interpreter)
    wrong = settings.model_copy(update={"url": UrlSettings(beside=("https://host/{sha}.whl",))})
    with pytest.raises(BenchmarkError, match=r"`builds\.url\.beside` has \{sha\}"):
        provide(f"{template}@{NIGHT}", cache, wrong)


def test_what_cannot_be_had_is_told_without_getting_it_and_the_cache_counts(index, cache, settings):
    nights = [f"2026-11-{day}" for day in (18, 19, 20, 21)]
    for night in ("20261118", "20261120"):
        name, content = torch_wheel(f"2.14.0.dev{night}")
        offer(index, f"/w/{name}", content)
    index.raw["/w/torch-2.14.0.dev20261119-py3-none-any.whl"] = (403, "text/html", b"")
    index.raw["/w/torch-2.14.0.dev20261121-py3-none-any.whl"] = (405, "text/html", b"")
    template = f"url:{index.address}/w/torch-2.14.0.dev{{yyyymmdd}}-py3-none-any.whl"
    request = ask(cache, settings)

    def absent(form: str) -> list[str]:
        return why_absent([parse_address(f"{form}@{night}") for night in nights], request)

    told = absent(template)
    assert [bool(one) for one in told] == [False, True, False, False]  # the last cannot be told
    assert told[1].endswith("is not there (HTTP 403)")
    provide(f"{template}@2026-11-18", cache, settings).close()
    del index.raw["/w/torch-2.14.0.dev20261118-py3-none-any.whl"]
    assert [bool(one) for one in absent(template)] == [False, True, False, False]

    index.add("torch", "2.14.0.dev20261120")
    index.add("torch", "2.14.0.dev20261121", tag="cp311-cp311-win32")
    assert [bool(one) for one in absent(f"nightly:{index.address}")] == [True, True, False, True]

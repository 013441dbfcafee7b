"""The frozen build: recorded once, found again, and refused when it is another than was frozen."""

import dataclasses
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from torchbenchmark.builds.eviction import items, remove_item
from torchbenchmark.canaries import frozen
from torchbenchmark.canaries.frozen import FrozenBuildChanged, frozen_before, frozen_build
from torchbenchmark.canaries.settings import CanarySettings
from torchbenchmark.environment import inspect_interpreter
from torchbenchmark.errors import BenchmarkError


def of_release(index, **keys) -> CanarySettings:
    return CanarySettings(
        **{"build": "release:torch==2.12.0", "requirements": ["numpy==2.4.6"], "index": index.address, **keys}
    )


def records(cache) -> list[Path]:
    return list((cache.folder / "frozen").glob("*.json"))


@pytest.fixture
def holds(monkeypatch):
    """What the interpreter of these tests holds beside: to be changed by them."""
    real = inspect_interpreter(Path(sys.executable))
    extra: dict[str, str] = {}

    def inspected(python, subject):
        return dataclasses.replace(real, distributions={**real.distributions, **extra})

    monkeypatch.setattr(frozen, "inspect_interpreter", inspected)
    return extra


def test_a_release_is_made_and_frozen_and_then_found_with_the_same_lock(index, cache, capsys):
    index.add("torch", "2.12.0", requires=("filelock",))
    index.add("filelock", "3.0")
    with frozen_build(of_release(index), cache) as first:
        assert first.build.version == "2.12.0"
        assert first.distributions["filelock"] == "3.0" and first.distributions["numpy"] == "2.4.6"
        assert first.interpreter.is_relative_to(cache.folder / "environments")
        with cache.unused(f"environment-{first.interpreter.parents[1].name}") as unused:
            assert not unused, "it is kept while it is measured"
    assert f"frozen: build {first.build.id}, lock {first.lock}" in capsys.readouterr().out
    with frozen_build(of_release(index), cache) as second:
        assert (second.lock, second.since) == (first.lock, first.since)
    assert "frozen:" not in capsys.readouterr().out
    assert len(records(cache)) == 1


def test_a_build_that_was_removed_and_comes_back_with_another_dependency_is_refused(index, cache):
    index.add("torch", "2.12.0", requires=("filelock",))
    index.add("filelock", "3.0")
    with frozen_build(of_release(index), cache) as first:
        pass
    for item in items(cache):
        assert remove_item(cache, item)
    index.add("filelock", "3.1")
    with pytest.raises(FrozenBuildChanged) as refused, frozen_build(of_release(index), cache):
        pass
    assert f"lock {first.lock}): filelock 3.0 -> 3.1; bring that back, or freeze" in str(refused.value)
    with frozen_build(of_release(index), cache, anew=True) as second:
        assert second.lock != first.lock
    with frozen_build(of_release(index), cache) as third:
        assert third.lock == second.lock


def test_an_interpreter_that_changed_is_refused_until_it_is_frozen_anew(cache, holds):
    settings = CanarySettings(python=sys.executable)
    with frozen_build(settings, cache) as first:
        assert first.interpreter == Path(sys.executable)
    holds |= {"numpy": "9.9", "timm": "9.9"}
    with pytest.raises(FrozenBuildChanged, match=r"numpy [\d.]+ -> 9\.9, .*--anew"), frozen_build(settings, cache):
        pass
    assert frozen_before(settings, cache).lock == first.lock, "what was frozen stays known"
    holds.clear()
    with frozen_build(settings, cache) as again:
        assert again.lock == first.lock


def test_an_interpreter_is_the_same_by_a_relative_path_as_a_plan_has_it(cache, holds, monkeypatch):
    absolute = Path(sys.executable)
    monkeypatch.chdir(absolute.parents[1])
    for python in (absolute, absolute.relative_to(Path.cwd())):
        with frozen_build(CanarySettings(python=python), cache):
            pass
    assert len(records(cache)) == 1


def test_the_lock_that_the_configuration_asks_for_is_the_one_that_is_frozen_or_nothing_is(cache, holds):
    settings = CanarySettings(python=sys.executable, lock="0123456789ab")
    with (
        pytest.raises(FrozenBuildChanged, match=r"`canary\.lock` in the configuration says 0123456789ab"),
        frozen_build(settings, cache),
    ):
        pass
    assert records(cache) == []
    with frozen_build(CanarySettings(python=sys.executable), cache) as there:
        pass
    with frozen_build(settings.model_copy(update={"lock": there.lock}), cache) as pinned:
        assert pinned.since == there.since, "a lock that is written down later is no other build"


def test_a_damaged_record_is_told_and_not_replaced_by_what_is_there_now(cache, holds):
    settings = CanarySettings(python=sys.executable)
    with frozen_build(settings, cache):
        pass
    (path,) = records(cache)
    path.write_text("{}")
    with (
        pytest.raises(BenchmarkError, match=r"the record of the frozen build is damaged.*--anew"),
        frozen_build(settings, cache),
    ):
        pass
    assert frozen_before(settings, cache) is None
    with frozen_build(settings, cache, anew=True):
        pass


def test_an_address_that_means_another_build_tomorrow_is_refused(index, cache):
    night = date.today() - timedelta(days=1)
    index.add("torch", f"2.14.0.dev{night:%Y%m%d}")
    settings = CanarySettings(build=f"nightly:{index.address}@latest", requirements=["numpy==2.4.6"])
    with (
        pytest.raises(BenchmarkError, match=rf"means another build tomorrow; write nightly:.*@{night}"),
        frozen_build(settings, cache),
    ):
        pass


def test_what_cannot_be_had_is_told(cache):
    with (
        pytest.raises(BenchmarkError, match="not a usable interpreter"),
        frozen_build(CanarySettings(python="/no/such/python"), cache),
    ):
        pass
    assert frozen_before(CanarySettings(python="/no/such/python"), cache) is None

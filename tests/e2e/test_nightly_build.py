"""Last night's build on the command line: planned, installed by its plan, measured; and in a nightly of one machine."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from package_index import keep_pip_offline, serve
from pipeline import write_suite

from baselines.kept_wheels import kept_build
from baselines.store import open_store
from baselines.stored_builds import stored_build
from torchbenchmark.records import read_run, replace_lines
from torchbenchmark.shards import new_run_name, read_plan

LAST_NIGHT = datetime.now(UTC).date() - timedelta(days=1)
TORCH = f"2.14.0.dev{LAST_NIGHT:%Y%m%d}+cu130"


@pytest.fixture
def index(monkeypatch, tmp_path_factory):
    keep_pip_offline(monkeypatch, tmp_path_factory.mktemp("home"))
    with serve() as served:
        yield served


def configure(folder: Path, **keys) -> None:
    suite = write_suite(folder, ["dlrm", "soft_actor_critic"])
    config = {"suite": str(suite), "threads": 1, "rounds": 1, "budget_s": 0.05, "store": "store", "work": "work"}
    (folder / "nightly.yaml").write_text(yaml.safe_dump({**config, **keys}))


def test_a_plan_pins_last_nights_build_and_every_shard_gets_it(torchbench, tmp_path, index):
    index.add("torch", TORCH)
    configure(tmp_path, build={"index": index.address, "extra_index": index.address, "date": LAST_NIGHT})
    planned = torchbench("plan", "--shards", 2)
    assert planned.returncode == 0, planned.stderr
    assert f"build: torch=={TORCH} from {index.address}" in planned.stdout
    pin = read_plan(tmp_path / "plan.json").build
    assert (str(pin), pin.date) == (f"torch=={TORCH}", LAST_NIGHT)

    # A newer build comes before the shards start.
    index.add("torch", f"2.14.0.dev{LAST_NIGHT + timedelta(days=1):%Y%m%d}+cu130")
    built = torchbench("build", "--plan", "plan.json", "--into", "build")
    assert built.returncode == 0, built.stderr
    interpreter = built.stdout.splitlines()[-1]
    assert interpreter == str(tmp_path / "build" / "bin" / "python")
    assert json.loads((tmp_path / "build" / "build.json").read_text())["distributions"]["torch"]["version"] == TORCH

    # It is measured: every model is unsupported by so small a torch, and the record says on which build.
    shard = ("run", "--plan", "plan.json", "--shard", "1/2", "--out")
    measured = torchbench(*shard, "1.jsonl", "--python", interpreter)
    header = json.loads((tmp_path / "1.jsonl").read_text().splitlines()[0])
    assert header["build"]["version"] == TORCH, measured.stderr

    refused = torchbench(*shard, "other.jsonl")
    assert refused.returncode == 2
    assert "but the build is pinned to torch==" + TORCH in refused.stderr
    assert "torchbench build --plan PLAN --into FOLDER" in refused.stderr
    assert not (tmp_path / "other.jsonl").exists()


def test_a_nightly_of_one_machine_installs_the_build_that_it_measures(torchbench, tmp_path, index):
    index.add("torch", TORCH)
    configure(tmp_path, build={"index": index.address, "extra_index": index.address})
    ended = torchbench("nightly")
    assert f"installing torch=={TORCH} into {tmp_path}/work/build" in ended.stdout, ended.stdout + ended.stderr
    summary = tmp_path / "work" / "nightly.json"
    assert json.loads(summary.read_text())["build"].startswith(TORCH)

    # Its wheels are kept, and how it was pinned.
    store = open_store(str(tmp_path / "store"))
    build = json.loads(summary.read_text())["build"]
    assert (stored := stored_build(store, build)) is not None, ended.stdout + ended.stderr
    assert stored.pin.date == LAST_NIGHT
    assert {wheel.file.partition("-")[0] for wheel in kept_build(store, build).wheels} == {"torch", "numpy"}
    assert f"kept 2 wheels of build {build}" in ended.stdout

    # The next night is killed after its first line, and a newer build comes before it goes on.
    (stored,) = (tmp_path / "store" / "runs").rglob("1-of-1.jsonl.gz")
    header = read_run(stored).header
    killed = header.model_copy(update={"run": new_run_name(header.started)})
    replace_lines(tmp_path / "work" / "tonight.jsonl", [killed])
    index.add("torch", f"2.14.0.dev{LAST_NIGHT + timedelta(days=1):%Y%m%d}+cu130")
    ended = torchbench("nightly")
    assert "installing" not in ended.stdout, ended.stdout + ended.stderr
    assert json.loads(summary.read_text())["run"] == killed.run
    assert json.loads(summary.read_text())["build"] == header.build.id


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"python": "python3"}, "both `build` and `python` are set"),
        ({"subject": "torchvision"}, "`subject` is torchvision, but `build.packages` begins with torch"),
    ],
)
def test_a_configuration_that_names_two_builds_is_refused(torchbench, tmp_path, keys, said):
    configure(tmp_path, build={"index": "https://example.org/simple"}, **keys)
    ended = torchbench("plan", "--shards", 1)
    assert ended.returncode == 2
    assert said in ended.stderr and "nightly.yaml" in ended.stderr


def test_credentials_in_the_configuration_are_refused_and_not_printed(torchbench, tmp_path):
    configure(tmp_path, build={"index": "https://someone:hunter2@example.org/simple"})
    for command in (("plan", "--shards", 1), ("nightly",), ("build", "--config", "nightly.yaml", "--into", "build")):
        ended = torchbench(*command)
        assert ended.returncode == 2
        assert "key build.index: " in ended.stderr and "~/.netrc" in ended.stderr
        assert "hunter2" not in ended.stdout + ended.stderr


def test_build_by_the_configuration_installs_what_it_means_today(torchbench, tmp_path, index):
    index.add("torch", TORCH)
    configure(tmp_path, build={"index": index.address, "extra_index": index.address, "date": "latest"})
    built = torchbench("build", "--config", "nightly.yaml", "--into", "build")
    assert built.returncode == 0, built.stderr
    assert built.stdout.splitlines()[-1] == str(tmp_path / "build" / "bin" / "python")


def test_build_wants_one_source_that_names_a_build(torchbench, tmp_path):
    configure(tmp_path)
    for arguments, said in (
        ((), "name either the --plan"),
        (("--plan", "plan.json", "--config", "nightly.yaml"), "name either the --plan"),
        (("--config", "nightly.yaml"), "nightly.yaml: has no key build"),
        (("--plan", "plan.json"), "plan.json: pins no build"),
    ):
        if "plan.json" in arguments:
            assert torchbench("plan", "--shards", 1).returncode == 0
        ended = torchbench("build", "--into", "build", *arguments)
        assert ended.returncode == 2
        assert said in ended.stderr
    assert not (tmp_path / "build").exists()

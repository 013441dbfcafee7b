"""What options make of a suite's grid, and what `--dry-run` tells of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from torchbenchmark import cli
from torchbenchmark.dry_run import Fate, foresee
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.grid import GridOptions, choose, parse_batch_size
from torchbenchmark.planning import RunRequest
from torchbenchmark.registry import Registry, Suite
from torchbenchmark.shards import RunPlan, Shard
from torchbenchmark.terminal import new_app, run_app


def suite(**changes: object) -> Suite:
    fields = {"name": "s", "description": "d", "models": ["resnet18", "dlrm"], "tests": ["eval"], "preset": "tiny"}
    return Suite.model_validate(fields | changes)


def chosen(given: Suite, *filters: str, device: str = "cpu", **options: tuple) -> list[str]:
    return [test.id for test in choose(Registry(), given, device, filters, GridOptions(**options)).tests]


def test_without_options_the_whole_grid_of_the_suite_is_chosen_and_nothing_is_left_out():
    choice = choose(Registry(), suite(), "cpu")
    assert [test.id for test in choice.tests] == [
        "test_eval[resnet18-cpu-eager-tiny]",
        "test_eval[dlrm-cpu-eager-tiny]",
    ]
    assert choice.left_out == {}
    assert GridOptions().words == ()


def test_backends_and_precisions_that_are_named_take_the_place_of_the_suites():
    wide = suite(models=["resnet18"], backends=["eager", "jit"])
    assert chosen(wide, backends=("jit", "export"), precisions=("bf16",)) == [
        "test_eval[resnet18-cpu-jit-bf16-tiny]",
        "test_eval[resnet18-cpu-export-bf16-tiny]",
    ]


def test_a_size_that_is_asked_for_is_that_of_every_test_and_leaves_none_out():
    given = suite(models=["dlrm"], tests=["train", "eval"], preset="full")
    choice = choose(Registry(), given, "cpu", options=GridOptions(presets=("tiny",)))
    assert [test.id for test in choice.tests] == [
        "test_train[dlrm-cpu-eager-tiny]",
        "test_eval[dlrm-cpu-eager-tiny]",
    ]
    assert choice.left_out == {}
    assert GridOptions(presets=("tiny",)).words == ("--preset tiny",)
    with pytest.raises(BenchmarkError, match=r"--preset 'huge': use full, head, tiny"):
        GridOptions(presets=("huge",))


def test_a_model_that_the_suite_does_not_have_is_told_with_the_suites_that_do(tmp_path):
    with pytest.raises(BenchmarkError, match=r"^suite s does not have the model demucs; .* does: --suite v1$"):
        chosen(suite(), "demucs")
    with pytest.raises(BenchmarkError, match=r"does: --suite canary or --suite smoke or --suite v1$"):
        chosen(suite(), "resnet18", "hf_Bert")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "metadata.yaml").write_text(
        "{description: d, category: OTHER, domain: MINE, workload_version: '1'}"
    )
    with pytest.raises(BenchmarkError, match=r"model mine; ask for one that does: --suite with a YAML of your own$"):
        choose(Registry((tmp_path,)), suite(), "cpu", ["mine"])


def test_batch_sizes_may_be_the_models_own_and_numbers():
    assert chosen(suite(models=["dlrm"]), batch_sizes=("default", 8)) == [
        "test_eval[dlrm-cpu-eager-tiny]",
        "test_eval[dlrm-cpu-eager-bs8-tiny]",
    ]
    assert (parse_batch_size("default"), parse_batch_size("8")) == ("default", 8)
    for text in ("0", "-1", "8.0", "", "1000000000", "9" * 5000):
        with pytest.raises(BenchmarkError, match=r"--batch-size .*: use a number from 1 on, or default"):
            parse_batch_size(text)


def test_a_filter_picks_by_id_or_model_and_an_exclusion_takes_away():
    assert chosen(suite(tests=["train", "eval"]), "dlrm", "test_train*", exclude=("test_train[dlrm*",)) == [
        "test_train[resnet18-cpu-eager-tiny]",
        "test_eval[dlrm-cpu-eager-tiny]",
    ]


def test_a_tier_is_what_the_suite_says_it_is():
    tiered = suite(
        models=["resnet18", "dlrm", "hf_Bert"], tiers={"core": ["resnet*", "test_eval[dlrm-*"], "rest": ["hf_*"]}
    )
    assert chosen(tiered, tiers=("core",)) == chosen(tiered, "resnet18", "dlrm")
    assert len(chosen(tiered, tiers=("core", "rest"))) == 3


def timed_models(root: Path) -> Registry:
    for tier in ("short", "medium", "long"):
        folder = root / f"a_{tier}_one"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("")
        (folder / "metadata.yaml").write_text(
            "{description: d, category: OTHER, domain: OTHER_TASKS, workload_version: '1', tests: [eval], "
            f"presets: [tiny], tier: {tier}}}"
        )
    return Registry((root,))


def test_a_tier_by_duration_is_of_the_models_that_say_it_of_themselves(tmp_path):
    registry = timed_models(tmp_path)
    mixed = suite(models=["a_short_one", "a_medium_one", "a_long_one"], tiers={"core": ["a_long_*"]})

    def models(given: Suite, *tiers: str) -> list[str]:
        return [test.model for test in choose(registry, given, "cpu", (), GridOptions(tiers=tiers)).tests]

    assert models(mixed, "medium") == ["a_medium_one"]
    assert models(mixed, "short", "core") == ["a_short_one", "a_long_one"]
    own = mixed.model_copy(update={"tiers": {"medium": ("a_long_one",)}})
    assert models(own, "medium") == ["a_long_one"]  # a suite means its own


@pytest.mark.parametrize(
    ("filters", "options", "problem"),
    [
        ((), {"backends": ("warp",)}, "--backend 'warp': use eager, inductor"),
        ((), {"precisions": ("fp8",)}, "--precision 'fp8': use fp32, tf32"),
        ((), {"tests": ("infer",)}, "--test 'infer': use train, eval"),
        (
            (),
            {"tiers": ("gold",)},
            r"--tier 'gold': .* suite s has core \(.*\), and by duration there are short, medium, long",
        ),
        ((), {"tiers": ("long",)}, "--tier 'long': no test of suite s is in it"),
        (("resnet81",), {}, "unknown test 'resnet81'; did you mean resnet18"),
        ((), {"exclude": ("resnet81",)}, "unknown test 'resnet81'"),
        (("resnet18",), {"exclude": ("resnet18",)}, "suite s: the filters and --exclude resnet18 leave no test"),
    ],
)
def test_what_matches_nothing_or_leaves_nothing_is_refused(filters, options, problem):
    with pytest.raises(BenchmarkError, match=problem):
        chosen(suite(tiers={"core": ["*"]}), *filters, **options)


def test_the_header_of_a_run_tells_every_option_so_that_it_cannot_pass_for_a_whole_night():
    options = GridOptions(("eval",), ("jit", "jit"), ("bf16",), ("default", 8), ("core",), ("dlrm",))
    assert options.words == (
        "--test eval",
        "--backend jit",
        "--precision bf16",
        "--batch-size default",
        "--batch-size 8",
        "--tier core",
        "--exclude dlrm",
    )


# --dry-run


def outlook(given: Suite, *filters: str, device: str = "cpu", **options: tuple) -> dict[str, tuple[str, str]]:
    request = RunRequest(suite=given, device=device, selection=filters, options=GridOptions(**options))
    return {one.test: (one.fate, one.reason) for one in foresee(request)}


def test_a_dry_run_gives_every_test_its_fate_and_its_reason():
    given = suite(
        models=["resnet18", "dlrm"],
        backends=["eager", "jit", "cudagraphs"],
        skip=[{"tests": "test_eval[resnet18-*-jit*", "reason": "too slow"}],
    )
    fates = outlook(given, "resnet18", "test_eval[dlrm*", exclude=("test_eval[dlrm-cpu-eager*",), tests=("eval",))
    no_graphs = "CUDA graphs need a GPU; on the CPU torch would run without them and say nothing"
    assert fates == {
        "test_eval[resnet18-cpu-eager-tiny]": (Fate.MEASURED, ""),
        "test_eval[resnet18-cpu-jit-tiny]": (Fate.SKIPPED, "too slow"),
        "test_eval[resnet18-cpu-cudagraphs-tiny]": (Fate.UNSUPPORTED, no_graphs),
        "test_eval[dlrm-cpu-eager-tiny]": (Fate.LEFT_OUT, "--exclude test_eval[dlrm-cpu-eager*"),
        "test_eval[dlrm-cpu-jit-tiny]": (
            Fate.UNSUPPORTED,
            "its module is annotated with Sequence, which TorchScript does not know",
        ),
        "test_eval[dlrm-cpu-cudagraphs-tiny]": (Fate.UNSUPPORTED, no_graphs),
    }


def test_a_dry_run_also_lists_what_the_suite_has_and_the_options_do_not_ask_for():
    fates = outlook(suite(tests=["train", "eval"], tiers={"core": ["dlrm"]}), backends=("export",), tiers=("core",))
    assert {test: why for test, (fate, why) in fates.items() if fate is Fate.LEFT_OUT} == {
        "test_train[resnet18-cpu-eager-tiny]": "not asked for: --backend export",
        "test_eval[resnet18-cpu-eager-tiny]": "not asked for: --backend export",
        "test_train[dlrm-cpu-eager-tiny]": "not asked for: --backend export",
        "test_eval[dlrm-cpu-eager-tiny]": "not asked for: --backend export",
        "test_train[resnet18-cpu-export-tiny]": "in no tier that was asked for: --tier core",
        "test_eval[resnet18-cpu-export-tiny]": "in no tier that was asked for: --tier core",
    }


def test_a_dry_run_of_a_shard_leaves_the_others_models_out():
    plan = RunPlan.model_validate(
        {
            "run": "r",
            "started": "2026-01-02T03:04:05Z",
            "seed": 1,
            "suite": "s",
            "device": "cpu",
            "rounds": 1,
            "processes": 1,
            "subject": "torch",
            "timeout_s": 60,
            "shards": [["resnet18"], ["dlrm"]],
        }
    )
    request = RunRequest(suite=suite(), device="cpu", plan=plan, shard=Shard(index=2, count=2))
    assert [(one.test, one.fate) for one in foresee(request)] == [
        ("test_eval[dlrm-cpu-eager-tiny]", Fate.MEASURED),
        ("test_eval[resnet18-cpu-eager-tiny]", Fate.LEFT_OUT),
    ]


def command_line(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m torchbenchmark run`, whose exit code is 99 if it imported torch."""
    code = (
        "import sys\nfrom torchbenchmark.cli import main\n"
        "try: main()\nexcept SystemExit as ended: sys.exit(99 if 'torch' in sys.modules else ended.code)"
    )
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", code, "run", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": root, "PATH": ""},
        check=False,
    )


def test_a_dry_run_needs_no_gpu_and_no_torch_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "{name: mine, description: d, models: [resnet18, resnet50, dlrm], tiers: {core: [resnet*]}}"
    )
    ended = command_line(
        tmp_path,
        *("--dry-run", "--suite", "mine.yaml", "--device", "cuda", "--device", "cpu", "--test", "eval"),
        *("--backend", "eager", "--backend", "cudagraphs", "--precision", "amp_bf16", "--batch-size", "4"),
        *("--tier", "core", "--filter", "*resnet*", "--filter", "dlrm", "--exclude", "resnet18"),
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    words = " ".join(ended.stdout.split())
    for expected in (
        "│ test_eval[resnet50-cuda-cudagraphs-amp_bf16-bs4] │ measured │ │",
        "│ test_eval[resnet50-cpu-cudagraphs-amp_bf16-bs4] │ unsupported │ CUDA graphs need a GPU",
        "│ test_eval[resnet18-cpu-eager-amp_bf16-bs4] │ left out │ --exclude resnet18 │",
        "│ test_eval[dlrm-cpu-eager-amp_bf16-bs4] │ left out │ in no tier that was asked for: --tier core │",
        "│ test_train[dlrm-cpu-eager] │ left out │ not asked for: --test eval │",
        "suite mine on cuda, 3 rounds: 2 measured, 10 left out",
        "suite mine on cpu, 3 rounds: 1 measured, 1 unsupported, 10 left out",
    ):
        assert expected in words, ended.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_test_takes_a_kind_or_as_ever_a_glob(tmp_path):
    by_glob = command_line(tmp_path, "--dry-run", "--test", "resnet18", "--test", "train")
    assert by_glob.returncode == 0
    assert "rounds: 1 measured, 9 left out" in by_glob.stdout


def test_two_devices_are_two_runs_one_after_the_other_in_a_file_each(tmp_path, monkeypatch):
    started = []

    def note(request: RunRequest, out: Path, **_: object) -> int:
        started.append((request.device, request.workers, out.name))
        return 2 if request.device == "cpu" else 0

    monkeypatch.setattr(cli, "_run_one", note)
    app = new_app("")
    cli.register(app)
    with pytest.raises(SystemExit) as ended:
        run_app(
            app, ["run", "--device", "cpu", "--device", "cuda", "--workers", "3", "--out", str(tmp_path / "a.jsonl")]
        )
    assert started == [("cpu", 3, "a-cpu.jsonl"), ("cuda", 3, "a-cuda.jsonl")]
    assert ended.value.code == 2, "the worst of the two"
    started.clear()
    with pytest.raises(SystemExit):
        run_app(app, ["run", "--device", "cuda", "--device", "cuda", "--out", str(tmp_path / "a.jsonl")])
    assert started == [("cuda", None, "a.jsonl")]


def test_a_dry_run_of_a_resumed_run_is_refused(tmp_path):
    ended = command_line(tmp_path, "--dry-run", "--resume")
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: --dry-run: a run that is resumed has its plan in its file")


def test_an_option_that_a_plan_decides_is_refused_beside_one(tmp_path):
    for option in ("--backend", "--filter", "--tier", "--batch-size"):
        ended = command_line(tmp_path, "--plan", "plan.json", option, "8")
        assert ended.returncode == 2
        assert ended.stderr.startswith(f"error: {option}: comes from the --plan")

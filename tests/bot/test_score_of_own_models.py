"""The score of a night of models that the configuration names the folder of."""

from datetime import UTC, datetime
from pathlib import Path

from bot.conclusion import score
from bot.config import load_config
from torchbenchmark.records import (
    Build,
    Channel,
    Environment,
    Measuring,
    PlannedTest,
    Process,
    Record,
    Run,
    RunHeader,
    Status,
    Workload,
)

TEST = "test_eval[mine-cpu-eager]"
WHEN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
WORKLOAD = Workload(version="1", hash="abc")


def night() -> Run:
    latency = Channel(unit="s", samples=(0.5,), median=0.5, mean=0.5, p20=0.5)
    process = Process(
        round=1,
        index=0,
        zygote="z",
        start_method="fork",
        status=Status.OK,
        started=WHEN,
        seconds=1.0,
        channels={"latency": latency},
    )
    header = RunHeader(
        run="r1",
        suite="mine",
        machine_class="cpu-some-t1",
        device="cpu",
        started=WHEN,
        seed=1,
        rounds=1,
        processes=1,
        plan=(PlannedTest(test=TEST, workload=WORKLOAD),),
        measuring=Measuring(budget_s=1, warmup_cap_s=1, min_unit_s=0.01, min_samples=3, threads=1, timeout_s=60),
        build=Build(id="b", subject="torch", version="2.9", python="3.11", interpreter="/b/python"),
        environment=Environment(fingerprint="f", facts={}),
        harness="h",
    )
    record = Record(run="r1", test=TEST, workload=WORKLOAD, status=Status.OK, ended=WHEN, processes=(process,))
    return Run(header, (record,))


def test_a_model_of_ones_own_has_its_part_in_the_score_of_the_night(tmp_path: Path):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "models" / "mine" / "__init__.py").touch()
    (tmp_path / "models" / "mine" / "metadata.yaml").write_text(
        "{description: d, category: SPEECH, domain: SYNTHESIS, workload_version: '1'}"
    )
    (tmp_path / "reference.yaml").write_text(f"'{TEST}': {{norm: 1.0}}\n")
    path = tmp_path / "nightly.yaml"
    path.write_text(f"models: [models]\nreference: {tmp_path / 'reference.yaml'}\n")
    scored = score(load_config(path), None, night(), None)  # neither store nor summary: the reference is a file
    assert scored.problem == ""
    assert scored.score is not None and round(scored.score.total) == 2000

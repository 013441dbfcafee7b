"""Models that attack the harness rather than themselves: each ends in one record, and the others are measured."""

from pathlib import Path

from pipeline import MISBEHAVING_MODELS, processes_with_variable, write_suite

from torchbenchmark.records import Status, read_run

# What each does in its first iteration, and how its record must end.
ATTACKS = {
    "a_stops_its_zygote": (
        "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(60)",
        Status.TIMEOUT,
        "no result within 4 s",
    ),
    "b_kills_its_zygote": ("os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)", Status.CRASH, "the zygote ended"),
    "c_real_time_signal": ("os.kill(os.getpid(), 40)", Status.CRASH, "ended by signal 40"),
    "d_writes_to_the_pipe": (
        "[os.write(fd, b'garbage\\n') for fd in range(3, 30) if stat.S_ISFIFO(mode_of(fd))]; time.sleep(1)",
        Status.CRASH,
        "a model wrote into its pipe",
    ),
    "e_removes_its_folder": ("shutil.rmtree(os.getcwd())", Status.ERROR, "FileNotFoundError"),
    "f_lone_surrogate": (
        r"raise ValueError('\ud800 \x1b[31m \u202e' + 'x' * 10**6)",
        Status.ERROR,
        "ValueError during",
    ),
    "g_no_text": (
        "raise type('Silent', (Exception,), {'__str__': lambda self: 1 / 0})()",
        Status.ERROR,
        "cannot be told",
    ),
}
# What each does when it is imported; only the culprit may suffer from it.
IMPORTS = {
    "h_ignores_children": "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "i_takes_stdout": "sys.stdout = None",
    "j_breaks_json": "import json; json.dumps = lambda *a, **k: 'no'",
}
PROLOGUE = """import os, shutil, signal, stat, sys, time

def mode_of(fd):
    try:
        return os.fstat(fd).st_mode
    except OSError:
        return 0

{on_import}
"""


def make_model(folder: Path, name: str, on_import: str = "", in_forward: str = "") -> None:
    source = (MISBEHAVING_MODELS / "healthy" / "__init__.py").read_text()
    forward = "    def forward(self) -> torch.Tensor:\n"
    assert forward in source
    body = source.replace(forward, f"{forward}        {in_forward or 'pass'}\n")
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(PROLOGUE.format(on_import=on_import) + body)
    (folder / name / "metadata.yaml").write_text((MISBEHAVING_MODELS / "healthy" / "metadata.yaml").read_text())


def test_each_attack_ends_in_one_record_and_every_other_model_is_measured(torchbench, tmp_path):
    for name, (in_forward, _, _) in ATTACKS.items():
        make_model(tmp_path / "models", name, in_forward=in_forward)
    for name, on_import in IMPORTS.items():
        make_model(tmp_path / "models", name, on_import=on_import)
    make_model(tmp_path / "models", "healthy_one")
    make_model(tmp_path / "models", "healthy_two")
    suite = write_suite(tmp_path, [*ATTACKS, *IMPORTS, "healthy_one", "healthy_two"], "[train]")
    options = ("--threads", 1, "--rounds", 1, "--budget", 0.05, "--timeout", 4)
    ended = torchbench("run", "--suite", suite, "--models", tmp_path / "models", *options, "--out", "out.jsonl")
    assert ended.returncode == 2, ended.stderr
    assert "internal error" not in ended.stderr
    assert "\x1b" not in ended.stdout
    run = read_run(tmp_path / "out.jsonl")
    records = {record.test.removeprefix("test_train[").partition("-")[0]: record for record in run.records}
    assert run.missing == []
    for name, (_, status, reason) in ATTACKS.items():
        assert records[name].status is status, records[name]
        assert reason in records[name].reason
        assert len(records[name].reason) <= 600
    for name in (*IMPORTS, "healthy_one", "healthy_two"):
        assert records[name].status is Status.OK, records[name]
    assert processes_with_variable("TORCHBENCH_RUN", run.header.run) == []

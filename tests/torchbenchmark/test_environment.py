"""What was measured and where. Most interpreters here hold a small package of the name torch: the real one costs
seconds an import."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchbenchmark import __version__, environment
from torchbenchmark.environment import Interpreter, inspect_interpreter, machine_class, worker_variables
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.records import Build, to_line, unfit_text

SMALL_TORCH = """
class cuda:
    class nccl:
        version = staticmethod(lambda: (2, 21, 5))
    is_available = staticmethod(lambda: bool(GPUS))
    device_count = staticmethod(lambda: len(GPUS))
    get_device_properties = staticmethod(lambda number: GPUS[number])

class Gpu:
    def __init__(self, name):
        self.name, self.total_memory = name, 2**30

class backends:
    class cudnn:
        is_available = staticmethod(lambda: True)
        version = staticmethod(lambda: 90100)

class __config__:
    show = staticmethod(lambda: "  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build\\n")

class _C:
    _nccl_version = staticmethod(lambda: 0)

GPUS = []
compiled_with_cxx11_abi = lambda: True
from torch import version
"""
SITE_PACKAGES = Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def make_venv(folder: Path) -> Path:
    """The interpreter of an empty virtual environment."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    return folder / "bin" / "python"


def site_packages(python: Path) -> Path:
    return python.parents[1] / SITE_PACKAGES


def install(python: Path, name: str, version: str) -> None:
    info = site_packages(python) / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.fixture
def make_build(tmp_path: Path) -> Callable[..., Path]:
    """Makes an interpreter that holds the small torch."""

    def make(name: str = "build", source: str = "", commit: str = "c0ffee", **wheels: str) -> Path:
        python = make_venv(tmp_path / name)
        package = site_packages(python) / "torch"
        package.mkdir()
        (package / "__init__.py").write_text(SMALL_TORCH + source)
        (package / "version.py").write_text(f"cuda = '12.6'\nhip = None\ngit_version = {commit!r}\n")
        for distribution, version in ({"torch": "9.9+cu126", "triton": "3.5"} | wheels).items():
            install(python, distribution.replace("_", "-"), version)
        return python

    return make


@pytest.fixture
def interpreter() -> Interpreter:
    build = Build(id="9.9-0", subject="torch", version="9.9", python="CPython 3.11", interpreter="/b/python")
    return Interpreter(build, {"timm": "1.0"}, {"torch": "9.9", "timm": "1.0"}, ("NVIDIA H200", "NVIDIA H200"))


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


# Secrets

SECRETS = """
    GITHUB_TOKEN GH_TOKEN ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL ACTIONS_ID_TOKEN_REQUEST_TOKEN HF_TOKEN
    SLACK_HOOK
    HUGGING_FACE_HUB_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_WEB_IDENTITY_TOKEN_FILE
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI GOOGLE_APPLICATION_CREDENTIALS AZURE_CLIENT_SECRET
    AZURE_STORAGE_CONNECTION_STRING AZURE_STORAGE_SAS_TOKEN NPM_AUTH NPM_CONFIG__AUTH DOCKER_AUTH_CONFIG SSH_AUTH_SOCK
    OAUTH HTTP_AUTHORIZATION PGPASSWORD MYSQL_PWD DB_PASSWORD DB_PASS SSHPASS GPG_PASSPHRASE REDIS_PW my_passwd
    GH_PAT AZURE_DEVOPS_EXT_PAT WANDB_API_KEY OPENAI_APIKEY DEPLOY_KEY SSH_KEY DEPLOYKEY SIGNING_KEY_2 ENCRYPTION_KEYS
    SSH_PRIVATE_FILE CI_JOB_JWT CI_JOB_JWT_V2 SENTRY_DSN SLACK_WEBHOOK_URL SESSION_COOKIE TWINE_CREDS BEARER
    secret_sauce Api_Key GITHUB_ENV GITHUB_PATH GITHUB_OUTPUT GITHUB_STATE GITHUB_STEP_SUMMARY
"""
HARMLESS = """
    PATH HOME LANG TZ PWD OLDPWD USER SHELL TMPDIR XDG_SESSION_ID XAUTHORITY KEYBOARD KEYMAP GIT_AUTHOR_NAME
    LD_LIBRARY_PATH LD_PRELOAD CUDA_VISIBLE_DEVICES CUDA_HOME NVIDIA_VISIBLE_DEVICES OMP_NUM_THREADS KMP_AFFINITY
    MKL_NUM_THREADS NCCL_DEBUG PYTORCH_CUDA_ALLOC_CONF LLVM_PASS_PLUGIN_PATH
    TORCH_NO_BYPASS HF_HOME TRANSFORMERS_CACHE SSL_CERT_FILE PATTERN PASSED_TESTS CI GITHUB_ACTIONS GITHUB_SHA
    GITHUB_REPOSITORY RUNNER_TEMP TORCHBENCH_RUN PYTHONPATH PYTHONHASHSEED DISPATCH AUTHOR SASL_PATH
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_a_variable_that_is_named_like_a_secret_does_not_reach_a_worker(name: str, monkeypatch) -> None:
    monkeypatch.setenv(name, "hush")
    assert "hush" not in worker_variables().values()


@pytest.mark.parametrize("name", HARMLESS.split())
def test_a_harmless_variable_reaches_a_worker(name: str, monkeypatch) -> None:
    monkeypatch.setenv(name, "as it was")
    assert worker_variables()[name] == "as it was"


@pytest.mark.parametrize(
    "value",
    [
        "https://user:hush@mirror.example/simple",
        "https://hush@github.com/some/repo",
        "--index-url https://mirror.example --extra-index-url http://user:hush@other.example/simple",
        "postgresql://db:hush@db.example:5432/bench",
        "AUTHORIZATION: basic hush",
        "Bearer hush",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nhush",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "github_pat_11ABCDEFG0123456789abc_hush",
        "hf_ABCDEFGHIJabcdefghijABCDEFGHIJ0123",
        "https://hooks.slack.com/services/T000/B000/hush",
        "AKIAIOSFODNN7EXAMPLE",
    ],
)
def test_a_value_that_holds_a_secret_does_not_reach_a_worker_whatever_its_name(value: str, monkeypatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", value)
    assert value not in worker_variables().values()


@pytest.mark.parametrize(
    "value",
    [
        "https://mirror.example/simple",
        "https://github.com/@someone/repo",
        "someone@example.org",
        "/models/hf_BertForMaskedLM_of_some_length_and_more",
        "/opt/ghp_tools",
    ],
)
def test_a_value_that_only_resembles_a_secret_reaches_a_worker(value: str, monkeypatch) -> None:
    monkeypatch.setenv("SOME_PLACE", value)
    assert worker_variables()["SOME_PLACE"] == value


def test_what_the_measuring_needs_wins_over_the_callers_variables_and_the_driver_over_both(monkeypatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "64")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    assert worker_variables()["OPENBLAS_NUM_THREADS"] == "1"
    assert worker_variables()["TOKENIZERS_PARALLELISM"] == "false"
    assert worker_variables({"OPENBLAS_NUM_THREADS": "2"})["OPENBLAS_NUM_THREADS"] == "2"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "64"


def test_the_interpreter_that_is_inspected_sees_no_secret(make_build, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "hush")
    python = make_build(source="import os\nif 'GITHUB_TOKEN' in os.environ: raise ImportError('it sees the token')\n")
    assert inspect_interpreter(python).build.version == "9.9+cu126"


# The build's interpreter


def test_the_real_torch_in_an_overlay_is_the_same_build_wherever_the_overlay_lies(tmp_path: Path) -> None:
    builds = []
    for name in ("here", "there"):
        python = make_venv(tmp_path / name)
        (site_packages(python) / "base.pth").write_text(sysconfig.get_path("purelib") + "\n")
        builds.append(inspect_interpreter(python).build)
    assert builds[0].id == builds[1].id
    assert builds[0].interpreter != builds[1].interpreter
    assert builds[0].id.startswith(f"{builds[0].version}-")
    assert re.fullmatch("[0-9a-f]{40}", builds[0].commit or "")
    assert builds[0].wheels["torch"] == builds[0].version
    assert "cxx11_abi" in builds[0].libraries


def test_a_build_is_told_with_all_that_its_wheels_bring_and_the_harness_apart(make_build) -> None:
    python = make_build(nvidia_cudnn_cu12="9.10", mkl="2024.2", timm="1.0.1", numpy="2.1", requests="2.32")
    told = inspect_interpreter(python)
    assert told.build.wheels == {"torch": "9.9+cu126", "triton": "3.5", "nvidia-cudnn-cu12": "9.10", "mkl": "2024.2"}
    assert told.build.libraries == {
        "cuda": "12.6",
        "cudnn": "90100",
        "nccl": "2.21.5",
        "mkl": "2024.2-Product",
        "cxx11_abi": "True",
    }
    assert told.build.commit == "c0ffee"
    assert told.build.interpreter == str(python)
    assert told.lock == {"timm": "1.0.1", "numpy": "2.1"}
    assert told.distributions["requests"] == "2.32"
    assert told.gpus == ()


def test_the_id_of_a_build_stays_over_two_calls_and_another_place(make_build) -> None:
    one, other = make_build("one"), make_build("other")
    ids = {inspect_interpreter(python).build.id for python in (one, one, other)}
    assert len(ids) == 1
    assert ids.pop().startswith("9.9+cu126-")


@pytest.mark.parametrize(
    "change",
    [
        {"triton": "3.6"},
        {"torch": "9.9.1"},
        {"nvidia_cudnn_cu12": "9.10"},
        {"commit": "another"},
        {"source": "backends.cudnn.version = staticmethod(lambda: 90200)\n"},
    ],
)
def test_the_id_of_a_build_moves_with_everything_that_its_wheels_bring(make_build, change: dict[str, str]) -> None:
    before, after = (
        inspect_interpreter(make_build(name, **wheels)).build for name, wheels in (("a", {}), ("b", change))
    )
    assert before.id != after.id


@pytest.mark.parametrize(
    "change", [{"timm": "1.0.1"}, {"requests": "2.32"}, {"source": "GPUS = [Gpu('NVIDIA H200')]\n"}]
)
def test_the_id_of_a_build_does_not_move_with_the_harness_or_the_machine(make_build, change: dict[str, str]) -> None:
    before, after = (
        inspect_interpreter(make_build(name, **wheels)).build for name, wheels in (("a", {}), ("b", change))
    )
    assert before.id == after.id


@pytest.mark.parametrize(
    ("name", "content", "moves"),
    [
        ("hook.pth", "import sys\n", True),
        ("hook.pth", "# a comment\nimport\tsys; sys.x = 1\n", True),
        ("paths.pth", "/some/where\n", False),
        ("paths.pth", "# import sys\nimportant/place\n", False),
        ("__editable__.torchbench_sentinel-0.1.0.pth", "import sys\n", False),
    ],
)
def test_only_a_pth_file_that_runs_code_at_the_start_moves_the_id(make_build, name, content, moves: bool) -> None:
    python = make_build()
    before = inspect_interpreter(python).build
    (site_packages(python) / name).write_text(content)
    after = inspect_interpreter(python).build
    assert (before.id != after.id) is moves
    assert list(after.startup_code) == ([name] if moves else [])


def test_two_pth_files_of_one_name_both_count_and_always_in_the_same_order(make_build, tmp_path, monkeypatch) -> None:
    python = make_build()
    (python.parents[1] / "pyvenv.cfg").open("a").write("include-system-site-packages = true\n")  # allows the user's
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path / "user"))
    folders = [site_packages(python), tmp_path / "user" / SITE_PACKAGES]
    folders[1].mkdir(parents=True)
    ids = []
    for contents in (["import sys\n", "import os\n"], ["import os\n", "import sys\n"], ["import sys\n", ""]):
        for folder, content in zip(folders, contents, strict=True):
            (folder / "hook.pth").write_text(content)
        for seed in ("0", "1", "2"):
            monkeypatch.setenv("PYTHONHASHSEED", seed)
            ids.append(inspect_interpreter(python).build.id)
    assert [len(set(ids[start : start + 3])) for start in (0, 3, 6)] == [1, 1, 1]
    assert len(set(ids)) == 3


def test_gpus_are_told_by_name(make_build) -> None:
    python = make_build(source="GPUS = [Gpu('NVIDIA H200'), Gpu('NVIDIA H100')]\n")
    assert inspect_interpreter(python).gpus == ("NVIDIA H200", "NVIDIA H100")


def test_a_subject_beside_torch_gives_the_version_and_the_commit(make_build) -> None:
    python = make_build(My_Kernels="0.3")
    package = site_packages(python) / "my_kernels"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "version.py").write_text("git_version = 'feed'\n")
    build = inspect_interpreter(python, "my_kernels").build
    assert (build.subject, build.version, build.commit) == ("my_kernels", "0.3", "feed")
    assert set(build.wheels) == {"torch", "triton", "my-kernels"}


def test_a_library_of_the_harness_belongs_to_the_build_where_it_is_the_subject(make_build) -> None:
    told = inspect_interpreter(make_build(timm="1.0.1", numpy="2.1"), "timm")
    assert told.build.wheels["timm"] == told.build.version == "1.0.1"
    assert told.lock == {"numpy": "2.1"}


def test_an_interpreter_given_by_a_relative_path_or_as_a_command_is_recorded_with_its_place(
    make_build, tmp_path: Path, monkeypatch
) -> None:
    python = make_build()
    monkeypatch.chdir(tmp_path)
    assert inspect_interpreter(Path("build/bin/python")).build.interpreter == str(python)
    monkeypatch.setenv("PATH", str(python.parent), prepend=os.pathsep)
    assert inspect_interpreter(Path("python")).build.interpreter == str(python)


def refusal(python: Path, subject: str = "torch") -> str:
    with pytest.raises(BenchmarkError) as caught:
        inspect_interpreter(python, subject)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{python}: ")
    return message.removeprefix(f"{python}: ")


def test_an_interpreter_without_torch_is_refused(tmp_path: Path) -> None:
    assert refusal(make_venv(tmp_path / "bare")) == (
        "torch cannot be imported there (ModuleNotFoundError: No module named 'torch'); install the build first"
    )


def test_an_interpreter_whose_torch_does_not_import_is_refused_with_the_reason(make_build) -> None:
    missing = make_build("a", "raise ImportError('libcudart.so.12: cannot open shared object file')\n")
    assert "(ImportError: libcudart.so.12: cannot open" in refusal(missing)
    other = make_build("b", "raise OSError('libmkl.so: cannot open shared object file')\n")
    assert "(exit 1: OSError: libmkl.so: cannot open" in refusal(other)
    crashing = make_build("c", "import os; os.kill(os.getpid(), 11)\n")
    assert "(exit -11: no output)" in refusal(crashing)


def test_a_subject_that_is_not_installed_is_refused_by_name(make_build) -> None:
    assert refusal(make_build(), "torch_xla") == "the subject 'torch_xla' is not installed there"


def test_a_file_that_is_absent_or_no_program_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "absent") == "not a usable interpreter (No such file or directory); name another"
    assert refusal(tmp_path) == "not a usable interpreter (Permission denied); name another"
    text = tmp_path / "text"
    text.write_text("hello\n")
    assert refusal(text) == "not a usable interpreter (Permission denied); name another"
    text.write_bytes(b"\x7fELF nonsense")
    text.chmod(0o755)
    assert refusal(text) == "not a usable interpreter (Exec format error); name another"


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo hello", "(exit 0: no output)"),
        ("echo 'Unknown option: -P' >&2; exit 2", "(exit 2: Unknown option: -P)"),
    ],
)
def test_a_program_that_is_no_python_we_can_use_is_refused(tmp_path: Path, script: str, problem: str) -> None:
    message = refusal(program(tmp_path / "python", script))
    assert message == f"could not tell its versions {problem}; name a Python 3.11 or newer that holds the build"


def test_an_interpreter_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(environment, "IDENTITY_TIMEOUT_S", 0.2)
    assert refusal(program(tmp_path / "python", "exec sleep 60")) == "did not tell its versions within 0.2 s"


def test_an_answer_longer_than_a_pipe_holds_arrives_whole(tmp_path: Path) -> None:
    distributions = {f"distribution-{number}": "1.0" for number in range(10_000)} | {"torch": "9.9"}
    answer = {
        "python": "CPython 3.11",
        "distributions": distributions,
        "startup_code": {},
        "commit": None,
        "libraries": {},
        "devices": [],
        "problem": None,
    }
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    python = program(tmp_path / "python", f"cat {tmp_path}/answer.json > /dev/fd/$4")
    assert inspect_interpreter(python).distributions == distributions


def test_inspecting_leaves_no_file_open(tmp_path: Path, make_build) -> None:
    python, before = make_build(), len(os.listdir("/proc/self/fd"))
    inspect_interpreter(python)
    refusal(tmp_path / "absent")
    refusal(program(tmp_path / "python", "exit 3"))
    assert len(os.listdir("/proc/self/fd")) == before


# Class and fingerprint


@given(st.text())
def test_a_class_is_one_safe_segment_of_a_path_whatever_the_processor_is_called(name: str) -> None:
    build = Build(id="9.9-0", subject="torch", version="9.9", python="CPython 3.11", interpreter="/b/python")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "cpu_model", lambda: name)
        cpu = machine_class(Interpreter(build, {}, {}, ()), "cpu", 4)
    cuda = machine_class(Interpreter(build, {}, {}, (name,)), "cuda", 4)
    assert re.fullmatch(r"cpu-[a-z0-9-]*-t4", cpu)
    assert re.fullmatch(r"cuda-[a-z0-9-]*-x1-t4", cuda)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "cpu-intel-xeon-platinum-8481c-cpu-2-70ghz-t8"),
        ("AMD EPYC 9354 32-Core Processor", "cpu-amd-epyc-9354-32-core-processor-t8"),
        ("../../etc", "cpu-etc-t8"),
    ],
)
def test_a_class_of_processors_is_readable(name: str, expected: str, interpreter, monkeypatch) -> None:
    monkeypatch.setattr(environment, "cpu_model", lambda: name)
    assert machine_class(interpreter, "cpu", 8) == expected


def test_a_class_of_gpus_names_the_gpu_and_not_the_processor(interpreter: Interpreter) -> None:
    assert machine_class(interpreter, "cuda", 2) == "cuda-nvidia-h200-x1-t2"


def test_a_machine_without_a_gpu_has_no_class_for_one(interpreter: Interpreter) -> None:
    without = Interpreter(interpreter.build, {}, {}, ())
    with pytest.raises(BenchmarkError, match=r"^no CUDA device is visible to /b/python; use --device cpu or a CUDA"):
        machine_class(without, "cuda", 2)


def test_the_fingerprint_stays_over_two_calls_and_load_is_no_part_of_it(interpreter, monkeypatch) -> None:
    first = environment.describe_environment(interpreter, "cpu")
    monkeypatch.setattr(os, "getloadavg", lambda: (17.0, 0.0, 0.0))
    monkeypatch.setattr(environment.socket, "gethostname", lambda: "another")
    second = environment.describe_environment(interpreter, "cpu")
    assert first.fingerprint == second.fingerprint
    assert first.facts == second.facts
    assert second.observed == {"host": "another", "load_1min": "17.00"}


def test_the_fingerprint_moves_with_the_lock_the_image_and_the_measuring_code(interpreter, monkeypatch) -> None:
    seen = [environment.describe_environment(interpreter, "cpu")]
    other_lock = Interpreter(interpreter.build, {"timm": "1.1"}, {}, ())
    seen.append(environment.describe_environment(other_lock, "cpu"))
    monkeypatch.setenv("TORCHBENCH_IMAGE", "sha256:1")
    seen.append(environment.describe_environment(interpreter, "cpu"))
    monkeypatch.setattr(environment, "measuring_code_hash", lambda: "another")
    seen.append(environment.describe_environment(interpreter, "cpu"))
    assert len({one.fingerprint for one in seen}) == 4
    assert seen[1].facts["lock.timm"] == "1.1"
    assert seen[2].facts["image"] == "sha256:1"
    assert "" not in seen[0].facts.values()


@pytest.mark.parametrize(
    ("changed", "moves"),
    [("worker/measure.py", True), ("model.py", True), ("runner.py", False), ("worker/new.py", True)],
)
def test_the_measuring_code_is_the_worker_and_the_contract_and_not_the_driver(
    changed: str, moves: bool, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(environment, "PACKAGE", tmp_path)
    (tmp_path / "worker").mkdir()
    for name in ("model.py", "torchvision_guard.py", "runner.py", "worker/measure.py"):
        (tmp_path / name).write_text("A = 1\n")
    before = environment.measuring_code_hash()
    (tmp_path / changed).write_text("A = 2\n")
    assert (environment.measuring_code_hash() != before) is moves


GPU_VALUES = "NVIDIA H200, 580.1, 96.0, 700.00 W, 1980 MHz, 3201 MHz, Enabled, Default, Disabled, Enabled, {moving}"


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch) -> Callable[[str], Path]:
    """Puts a program of that name first on the PATH; it notes its arguments in a file."""

    def put(text: str) -> Path:
        program(tmp_path / "bin" / "nvidia-smi", f'echo "$@" > {tmp_path}/asked\n{text}')
        monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
        return tmp_path / "asked"

    return put


def test_facts_of_the_gpu_enter_the_fingerprint_and_its_temperature_does_not(interpreter, nvidia_smi) -> None:
    seen = []
    for moving in ("31, 345 MHz, 2619 MHz, 75.2 W, 0x0", "62, 1980 MHz, 3201 MHz, 500.0 W, 0x4"):
        nvidia_smi(f"echo '{GPU_VALUES.format(moving=moving)}'")
        seen.append(environment.describe_environment(interpreter, "cuda"))
    assert seen[0].fingerprint == seen[1].fingerprint
    assert seen[0].facts["gpu.driver_version"] == "580.1"
    assert seen[0].facts["gpu.ecc.mode.current"] == "Enabled"
    assert seen[1].observed["gpu.temperature.gpu"] == "62"
    assert seen[1].observed["gpu.clocks_event_reasons.active"] == "0x4"
    nvidia_smi(f"echo '{GPU_VALUES.format(moving=moving).replace('580.1', '581.0')}'")
    assert environment.describe_environment(interpreter, "cuda").fingerprint != seen[0].fingerprint
    assert not any(name.startswith("gpu.") for name in environment.describe_environment(interpreter, "cpu").facts)


@pytest.mark.parametrize(
    ("visible", "asked"), [(None, "0"), ("", "0"), ("3,1", "3"), ("GPU-12ab", "GPU-12ab"), (" 2 ", "2")]
)
def test_the_facts_are_those_of_the_first_gpu_that_is_visible(
    visible: str | None, asked: str, interpreter, nvidia_smi, monkeypatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    question = nvidia_smi("exit 0")
    environment.describe_environment(interpreter, "cuda")
    assert question.read_text().split()[-1] == f"--id={asked}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("echo 'No devices were found'; exit 6", "nvidia-smi did not answer"),
        ("exec sleep 60", "nvidia-smi did not answer"),
        ("echo 'NVIDIA H200, 580.1'", "nvidia-smi answered 2 values"),
    ],
)
def test_a_gpu_that_does_not_tell_its_facts_is_told_and_does_not_end_the_run(
    text: str, told: str, interpreter, nvidia_smi, monkeypatch
) -> None:
    monkeypatch.setattr(environment, "NVIDIA_SMI_TIMEOUT_S", 0.2)
    nvidia_smi(text)
    assert environment.describe_environment(interpreter, "cuda").observed["gpu_query"] == told


# This machine and this harness


def test_memory_is_the_limit_of_the_container_where_that_is_less(monkeypatch) -> None:
    limits = {"": None, "max": None, str(2**20): 2**20, str(2**60): None}
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for text, expected in limits.items():
        monkeypatch.setattr(environment, "_read", lambda path, text=text: text)
        assert environment.memory_bytes() == (expected or whole)


def test_the_harness_tells_its_commit_and_whether_it_was_changed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(environment, "PACKAGE", tmp_path / "torchbenchmark")
    assert environment.harness_commit() == f"version {__version__}"

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True, capture_output=True)

    git("init")
    assert environment.harness_commit() == f"version {__version__}"  # no commit yet
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-m", "one")
    commit = environment.harness_commit()
    assert re.fullmatch("[0-9a-f]{40}", commit)
    (tmp_path / "results.jsonl").write_text("untracked files change no number")
    assert environment.harness_commit() == commit
    (tmp_path / "file").write_text("2")
    assert environment.harness_commit() == f"{commit}-dirty"


def test_what_a_build_tells_of_itself_is_fit_for_the_header_of_a_file(make_build, make_header) -> None:
    python = make_build(source="\nGPUS.append(Gpu('H200\\x1b]0;owned\\x07\\n'))\n", commit="c0\x1b[31mffee\n")
    told = inspect_interpreter(python)
    assert (told.build.commit, told.gpus) == ("c0[31mffee", ("H200]0;owned",))
    assert unfit_text(json.loads(to_line(make_header("a", build=told.build))), allowed="\t") is None


def test_what_is_left_of_a_distribution_that_was_removed_by_halves_is_no_distribution(make_build) -> None:
    python = make_build()
    (left := site_packages(python) / "nvidia_left-1.dist-info").mkdir()
    (left / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-left\n")
    assert "nvidia-left" not in inspect_interpreter(python).distributions


@pytest.mark.parametrize("answer", ["[]", "{", '{"distributions": {"torch": 9}}', "null"])
def test_an_answer_in_another_form_is_refused_in_one_line(tmp_path: Path, answer: str) -> None:
    (tmp_path / "answer.json").write_text(answer)
    python = program(tmp_path / "python", f"cat {tmp_path}/answer.json > /dev/fd/$4")
    assert refusal(python).startswith("told its versions in a way that cannot be read")

"""What was measured and where: the identity of the build, and the class and fingerprint of the environment.

The two are never mixed: a slower cuDNN is a regression of the build; a new driver is a change of the environment.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ValidationError

from torchbenchmark import __version__
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.foreign_text import one_line
from torchbenchmark.gpu_batches import class_slug
from torchbenchmark.records import Build, Environment
from torchbenchmark.yaml_files import first_problem

PACKAGE = Path(__file__).parent
IDENTITY_TIMEOUT_S = 300
NVIDIA_SMI_TIMEOUT_S = 60

# Distributions whose versions belong to the build beside the subject: what a torch wheel brings along.
_BUILD_WHEELS = re.compile(r"(torch|triton|pytorch-triton.*|triton-.*|nvidia-.*|cuda-.*|mkl.*|intel-.*|rocm.*)")
# Distributions that the harness brings: their versions belong to the environment, unless one of them is the subject.
_HARNESS_LOCK = ("numpy", "timm", "tokenizers", "torchaudio", "torchvision", "transformers")
# Not KEYBOARD, PWD, PATH, XAUTHORITY, GIT_AUTHOR_NAME or TOKENIZERS_PARALLELISM. The last line: files through which a
# step of a GitHub job sets the variables and the PATH of the steps after it, whose secrets a build must not reach.
_SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|(?<!BY)PASS\d*$|_PWD?$|CREDENTIAL|(^|_)CREDS?(_|$)|PRIVATE"
    r"|KEYS?(_|\d|$)|APIKEY|AUTH(_|\d|$)|AUTHORIZATION|BEARER|(^|_)(PAT|JWT|DSN|SAS)(_|\d|$)|COOKIE|HOOK(_|\d|$)|WEBHOOK"
    r"|CONN(ECTION)?_?STR(ING)?"
    r"|^GITHUB_(ENV|PATH|OUTPUT|STATE|STEP_SUMMARY)$",
    re.IGNORECASE,
)
# A machine's own switches of the compilers' caches. torch takes some for the last word as it is imported; a child sets
# what its measurement needs, folders too (worker/compile_caches.py).
COMPILER_CACHES = (
    "CUDA_CACHE_DISABLE",
    "TORCHINDUCTOR_AUTOGRAD_CACHE",
    "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE",
    "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE",
    "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES",
    "TORCHINDUCTOR_FX_GRAPH_CACHE",
    "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE",
    "TORCH_COMPILE_FORCE_DISABLE_CACHES",
    "TRITON_ALWAYS_COMPILE",
    "TRITON_REMOTE_CACHE_BACKEND",
)
_SECRET_VALUE = re.compile(
    r"://[^/\s@]+@"  # a user or a token before the host of an address
    r"|hooks\.slack\.com/|discord(app)?\.com/api/webhooks|\b(AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY|\b(gh[oprsu]|github_pat|hf|glpat|npm)[-_][A-Z0-9]{20}|authorization:|bearer ",
    re.IGNORECASE,
)


_Line = Annotated[str, AfterValidator(one_line)]


class _Device(BaseModel):
    name: _Line
    memory_bytes: int


class _Answer(BaseModel):
    """What worker/identity.py tells. It runs in the build's interpreter beside the build's own code, and what it tells
    goes into the header of a file, which must stay readable whatever that is."""

    python: _Line
    interpreter: str = ""
    distributions: dict[_Line, _Line]
    startup_code: dict[_Line, _Line]
    commit: _Line | None
    libraries: dict[_Line, _Line]
    devices: list[_Device]
    problem: _Line | None


@dataclass(frozen=True)
class Interpreter:
    """What the build's interpreter told of itself."""

    build: Build
    lock: dict[str, str]  # distribution -> version, of what the harness brings
    distributions: dict[str, str]
    gpus: tuple[str, ...]


def inspect_interpreter(python: Path, subject: str = "torch") -> Interpreter:
    """Ask the interpreter at `python` what it holds. Raises BenchmarkError if it has no working torch."""
    # Found on the PATH like a command, made absolute, but not resolved: the link is what makes a virtual environment.
    python = Path(shutil.which(python) or python).absolute()
    answer = ask_interpreter(python, subject)
    distributions: dict[str, str] = answer["distributions"]
    if answer["problem"] is not None:
        raise BenchmarkError(f"{python}: torch cannot be imported there ({answer['problem']}); install the build first")
    key = normalised_name(subject)
    if key not in distributions:
        raise BenchmarkError(f"{python}: the subject {subject!r} is not installed there")
    wheels = {name: version for name, version in distributions.items() if name == key or _BUILD_WHEELS.fullmatch(name)}
    identity = {
        "python": answer["python"],
        "commit": answer["commit"],
        "wheels": wheels,
        "libraries": answer["libraries"],
        "startup_code": answer["startup_code"],
    }
    version = distributions[key]
    build = Build(
        id=f"{version}-{_digest(identity)[:8]}",
        subject=subject,
        version=version,
        interpreter=str(python),
        **identity,
    )
    lock = {name: distributions[name] for name in _HARNESS_LOCK if name in distributions and name not in wheels}
    return Interpreter(build, lock, distributions, tuple(device["name"] for device in answer["devices"]))


def ask_interpreter(python: Path, subject: str) -> dict[str, Any]:
    """The answer of worker/identity.py, whose keys it names; it also comes without a working torch."""
    script = PACKAGE / "worker" / "identity.py"
    with tempfile.TemporaryFile() as out:
        try:
            process = subprocess.run(
                [str(python), "-P", str(script), subject, str(out.fileno())],
                pass_fds=[out.fileno()],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=IDENTITY_TIMEOUT_S,
                env=worker_variables(),
                check=False,
            )
        except OSError as error:
            raise BenchmarkError(f"{python}: not a usable interpreter ({error.strerror}); name another") from error
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError(f"{python}: did not tell its versions within {IDENTITY_TIMEOUT_S} s") from error
        out.seek(0)
        answer = out.read()
    if process.returncode != 0 or not answer:
        last = (process.stderr.decode(errors="replace").strip().splitlines() or ["no output"])[-1]
        raise BenchmarkError(
            f"{python}: could not tell its versions (exit {process.returncode}: {one_line(last)}); "
            "name a Python 3.11 or newer that holds the build"
        )
    try:
        return _Answer.model_validate_json(answer).model_dump()
    except ValidationError as error:
        raise BenchmarkError(
            f"{python}: told its versions in a way that cannot be read: {first_problem(error)}"
        ) from error


def describe_environment(interpreter: Interpreter, device: str) -> Environment:
    """The fingerprint of this machine and harness, and the facts it is made of."""
    facts = {
        "os": _os_name(),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cpus": str(len(os.sched_getaffinity(0))),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "turbo_off": _read("/sys/devices/system/cpu/intel_pstate/no_turbo"),
        "smt": _read("/sys/devices/system/cpu/smt/control"),
        "memory_gib": str(round(memory_bytes() / 2**30)),
        "image": os.environ.get("TORCHBENCH_IMAGE", ""),
        "measuring_code": measuring_code_hash(),
        **{f"lock.{name}": version for name, version in interpreter.lock.items()},
    }
    observed = {"host": host_name(), "load_1min": f"{os.getloadavg()[0]:.2f}"}
    if device == "cuda":
        stable, moving = _gpu_facts()
        facts |= stable
        observed |= moving
    facts = {name: value for name, value in facts.items() if value}
    return Environment(fingerprint=_digest(facts)[:12], facts=facts, observed=observed)


def host_name() -> str:
    """By which the runners of a class are told from each other."""
    return socket.gethostname()


def machine_class(interpreter: Interpreter, device: str, threads: int) -> str:
    """What makes results comparable at all, as one path segment. Raises BenchmarkError if the device is not there."""
    if device == "cuda":
        if not interpreter.gpus:
            raise BenchmarkError(
                f"no CUDA device is visible to {interpreter.build.interpreter}; use --device cpu or a CUDA build"
            )
        model = interpreter.gpus[0]
        return f"cuda-{class_slug(model)}-x1-t{threads}"
    return cpu_class(threads)


def cpu_class(threads: int) -> str:
    """The class of this machine where nothing but its CPU is measured."""
    return f"cpu-{class_slug(cpu_model())}-t{threads}"


def harness_commit() -> str:
    """The commit of this harness, with "-dirty" where files differ from it; its version where it is no checkout."""
    root = PACKAGE.parent
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return f"version {__version__}"

    def ask(*arguments: str) -> str:
        return subprocess.run([git, "-C", str(root), *arguments], capture_output=True, text=True, check=True).stdout

    try:
        commit = ask("rev-parse", "HEAD").strip()
        return f"{commit}-dirty" if ask("status", "--porcelain", "--untracked-files=no").strip() else commit
    except subprocess.CalledProcessError:
        return f"version {__version__}"


def measuring_code_hash() -> str:
    """Hash over the code that runs beside the models: a change of it can move numbers, one of the driver cannot."""
    digest = hashlib.sha256()
    paths = [PACKAGE / "model.py", PACKAGE / "torchvision_guard.py", *sorted((PACKAGE / "worker").rglob("*.py"))]
    for path in paths:
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable of the environment is kept from builds, and from what is written."""
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))


def worker_variables(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Environment variables of a worker: this process's, less whatever looks like a secret, plus what the measuring
    needs to be set before its libraries are imported."""
    variables = {name: value for name, value in os.environ.items() if not looks_secret(name, value)}
    for name in COMPILER_CACHES:
        variables.pop(name, None)
    variables |= {
        "OPENBLAS_NUM_THREADS": "1",  # numpy's OpenBLAS would start its threads at import, and no fork could follow
        "JE_ARROW_MALLOC_CONF": "background_thread:false",  # so would pyarrow, which transformers may bring in
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # torch.cuda.is_available() without a driver context
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }
    return variables | dict(extra or {})


def normalised_name(distribution: str) -> str:
    """The one spelling of a distribution's name under which `Interpreter.distributions` has it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def default_threads() -> int:
    """The CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def default_interpreter() -> Path:
    return Path(sys.executable)


def memory_bytes() -> int:
    """Physical memory of the machine, or the limit of this process's cgroup where that is less."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _read("/sys/fs/cgroup/memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def cpu_model() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return match[1].strip() if match else platform.machine()


def first_visible_gpu() -> str:
    """The GPU that the tests run on, as nvidia-smi takes it: a number or a UUID."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"


def _gpu_facts() -> tuple[dict[str, str], dict[str, str]]:
    """(facts that stay, facts that move) of the first visible GPU, from nvidia-smi where it is installed."""
    stable = ("name", "driver_version", "vbios_version", "power.limit", "clocks.max.sm", "clocks.max.mem")
    stable += ("persistence_mode", "compute_mode", "mig.mode.current", "ecc.mode.current")
    moving = ("temperature.gpu", "clocks.sm", "clocks.mem", "power.draw", "clocks_event_reasons.active")
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return {}, {}
    query = [smi, f"--query-gpu={','.join((*stable, *moving))}", "--format=csv,noheader", f"--id={first_visible_gpu()}"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True, timeout=NVIDIA_SMI_TIMEOUT_S).stdout
    except (OSError, subprocess.SubprocessError):
        return {}, {"gpu_query": "nvidia-smi did not answer"}
    values = [value.strip() for value in answer.strip().split(",")]
    if len(values) != len(stable) + len(moving):
        return {}, {"gpu_query": f"nvidia-smi answered {len(values)} values"}
    named = {f"gpu.{name}": value for name, value in zip((*stable, *moving), values, strict=True)}
    return (
        {name: value for name, value in named.items() if name.removeprefix("gpu.") in stable},
        {name: value for name, value in named.items() if name.removeprefix("gpu.") in moving},
    )


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""

"""`.github/isolate`: what a command that it runs can see, reach and leave, from the inside."""

import functools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ISOLATE = Path(__file__).parents[2] / ".github" / "isolate"
FORK = """
import os, time
for _ in range(60):
    if os.fork() == 0:
        time.sleep(30)
"""
TELL_ALL = """
env; echo; id; echo; ls /; ls /root /home 2>&1; ls -R /tmp; echo; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'
"""

KEYS = """
import ctypes, os, sys
kernel, (add, keyctl) = ctypes.CDLL(None), {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
session = ctypes.c_int(-3)
if sys.argv[1] == "keep":
    if kernel.syscall(keyctl, 1, None) < 0 or kernel.syscall(add, b"user", b"of-the-job", b"secret", 6, session) < 0:
        sys.exit(print("this kernel keeps no keys"))
    os.execv(sys.argv[2], sys.argv[2:])
print("nothing" if kernel.syscall(keyctl, 10, session, b"user", b"of-the-job", 0) < 0 else "the key")
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="to isolate a command needs root")


@pytest.fixture
def isolate(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "the-token-of-the-job")
    monkeypatch.setenv("GITHUB_ENV", str(tmp_path / "command-file"))
    for name in ("command-file", "of-another-job"):
        (tmp_path / name).write_text("not yours\n")
        (tmp_path / name).chmod(0o666)

    def run(*arguments: object, work: Path = tmp_path / "work") -> subprocess.CompletedProcess[str]:
        command = [ISOLATE, "--work", work, *arguments]
        return subprocess.run(map(str, command), capture_output=True, text=True, timeout=60, check=False)

    return run


def printed(ended: subprocess.CompletedProcess[str]) -> str:
    """What the command printed, between the lines that keep the runner from taking it for commands."""
    found = re.fullmatch(r"::stop-commands::([0-9a-f]{32})\n(.*)\n::\1::\n", ended.stdout, re.DOTALL)
    assert found, ended
    return found[2]


@needs_root
def test_it_sees_no_variable_no_home_no_other_file_and_no_other_process(isolate, tmp_path):
    ended = isolate("--variable", "SAID=yes", "--", "bash", "-c", TELL_ALL)
    assert ended.returncode == 0, ended
    told = printed(ended)
    assert "SAID=yes\n" in told and f"HOME={tmp_path / 'work'}\n" in told
    assert ended.stdout.split("::")[2].strip() not in told, "what ends the silence is known to nobody in there"
    for secret in ("the-token-of-the-job", "GITHUB_", "command-file", "of-another-job", "ISOLATE_INSIDE"):
        assert secret not in told
    assert "uid=59321 gid=59321 groups=59321\n" in told
    assert "cannot access '/root'" in told and "cannot access '/home'" in told


@needs_root
def test_of_the_folders_of_libraries_it_is_told_those_of_the_system_and_no_others(isolate, tmp_path, monkeypatch):
    folders = ["/usr/lib", str(tmp_path), "/usr/no-such-folder", "/usr/../etc", "", "relative", "/usr/share"]
    monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(folders))
    told = printed(isolate("--", "bash", "-c", "echo $LD_LIBRARY_PATH"))
    assert told == "/usr/lib:/usr/share\n"
    assert (
        printed(isolate("--variable", "LD_LIBRARY_PATH=/mine", "--", "bash", "-c", "echo $LD_LIBRARY_PATH"))
        == "/mine\n"
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert printed(isolate("--", "bash", "-c", "echo ${LD_LIBRARY_PATH-none}")) == "none\n"


@needs_root
def test_it_can_write_nowhere_but_in_its_folder_and_has_no_privilege(isolate, tmp_path):
    (tmp_path / "named").mkdir(mode=0o777)
    (tmp_path / "named").chmod(0o777)
    script = f"""
for path in {tmp_path}/named/x {tmp_path}/command-file /etc/x /usr/x /x /proc/sys/kernel/core_pattern /dev/x; do
  (echo evil > $path) 2>/dev/null && echo "wrote $path"
done
echo mine > {tmp_path}/work/mine && cat mine
grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr -d '\\t'
mount -t tmpfs none /tmp 2>/dev/null && echo mounted
unshare -rm true 2>/dev/null && chroot / true 2>/dev/null && echo chroot
kill -9 1 2>/dev/null && echo killed
"""
    ended = isolate("--readable", tmp_path / "named", "--", "bash", "-c", script)
    assert printed(ended) == "mine\nCapEff:0000000000000000\nCapBnd:0000000000000000\nNoNewPrivs:1\n"
    assert (tmp_path / "command-file").read_text() == "not yours\n"


@needs_root
def test_the_network_is_there_only_where_it_is_allowed(isolate, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        reach = ("--", "bash", "-c", f"(: < /dev/tcp/127.0.0.1/{server.server_port}) 2>/dev/null && echo reached")
        assert printed(isolate("--network", *reach)) == "reached\n"
        ended = isolate(*reach)
        server.shutdown()
    assert (ended.returncode, printed(ended)) == (1, "")


@needs_root
def test_what_it_leaves_running_is_killed_and_its_time_ends(isolate, tmp_path):
    name = f"left-{os.getpid()}"
    linger = f"(exec -a {name} setsid sleep 300) & exec -a {name} sleep 300"
    began = time.monotonic()
    ended = isolate("--seconds", 1, "--", "bash", "-c", linger)
    assert ended.returncode == 124 and "ended after 1 seconds" in ended.stderr
    assert time.monotonic() - began < 30
    assert (
        printed(isolate("--", "bash", "-c", f"(exec -a {name} setsid sleep 300 >/dev/null 2>&1) & echo bye")) == "bye\n"
    )
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [one for one in running if one.startswith(f"{name}\0".encode())]


@needs_root
def test_its_processes_files_and_memory_have_limits(isolate):
    file = "head -c 3000000 /dev/zero 2>/dev/null > large; stat --format=%s large"
    many = isolate("--processes", 20, "--", "python3", "-c", FORK)
    assert many.returncode == 1 and "BlockingIOError" in many.stdout
    assert printed(isolate("--file-mib", 1, "--", "bash", "-c", file)).endswith("1048576\n")
    memory = isolate("--memory-mib", 100, "--", "python3", "-c", "bytearray(300 * 2**20)")
    assert memory.returncode == 1 and "MemoryError" in memory.stdout


@needs_root
def test_what_it_says_of_errors_stands_within_the_silence_too(isolate):
    """The runner reads two streams each at its own pace, and the silence ends on one of them."""
    ended = isolate("--", "bash", "-c", "echo said; echo ::add-mask::said >&2; echo more")
    assert ended.stderr == ""
    assert printed(ended) == "said\n::add-mask::said\nmore\n"


@needs_root
def test_it_has_none_of_the_keys_that_the_kernel_keeps_for_the_job(isolate, tmp_path):
    """A session's keyring is inherited by all that is started, also by another user."""
    (keys := tmp_path / "keys.py").write_text(KEYS)
    command = [ISOLATE, "--work", tmp_path / "work", "--readable", keys, "--", "/usr/bin/python3", keys, "look"]
    outside = [sys.executable, keys, "keep", *command]
    ended = subprocess.run(map(str, outside), capture_output=True, text=True, timeout=60, check=False)
    if "this kernel keeps no keys" not in ended.stdout:
        assert (ended.returncode, printed(ended)) == (0, "nothing\n"), ended


@needs_root
def test_its_folder_is_emptied_unless_it_goes_on_and_no_link_leads_out(isolate, tmp_path):
    (outside := tmp_path / "outside").mkdir()
    (outside / "kept").write_text("kept")
    work = tmp_path / "work"
    assert isolate("--", "bash", "-c", f"touch mine; ln -s {outside} link; ln -s /etc/shadow shadow").returncode == 0
    assert printed(isolate("--keep", "--", "ls")) == "link\nmine\nshadow\n"
    assert printed(isolate("--", "ls", "-A")) == ""
    assert (outside / "kept").read_text() == "kept"
    work.rmdir()
    work.symlink_to(outside)
    ended = isolate("--", "touch", "x")
    assert ended.returncode == 2 and "is a link" in ended.stderr
    assert sorted(path.name for path in outside.iterdir()) == ["kept"]


@needs_root
def test_an_interpreter_brings_what_it_needs_and_its_environment_is_not_the_callers(isolate):
    ended = isolate("--interpreter", sys.executable, "--", sys.executable, "-c", "import yaml; print(yaml.__name__)")
    assert (ended.returncode, printed(ended)) == (0, "yaml\n"), ended.stderr


@needs_root
def test_what_is_mounted_in_a_folder_of_the_system_is_there_also_when_that_is_named(tmp_path):
    """A GPU's driver is mounted into /usr of a container; /usr is also what an interpreter of the system needs."""
    mounted = 'mount -t tmpfs driver /usr/games && echo library >/usr/games/libdriver && exec "$@"'
    command = [ISOLATE, "--work", tmp_path / "work", "--interpreter", "/usr/bin/python3"]
    shown = ["--", "bash", "-c", "cat /usr/games/libdriver; touch /usr/games/mine 2>&1 || true"]
    started = ["unshare", "--mount", "--propagation", "private", "bash", "-c", mounted, "bash", *map(str, command)]
    ended = subprocess.run([*started, *shown], capture_output=True, text=True, timeout=60, check=False)
    assert printed(ended).startswith("library\n") and "Read-only file system" in printed(ended), ended


@needs_root
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_a_step_that_is_cancelled_ends_what_it_runs(tmp_path, number):
    script = "trap 'touch told; exit 0' TERM; touch ready; sleep 60 & wait"
    command = [ISOLATE, "--work", tmp_path / "work", "--", "bash", "-c", script]
    # As a runner starts its steps: no shell can catch what was ignored when it began, as SIGINT is in the background.
    heeded = functools.partial(signal.signal, number, signal.SIG_DFL)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=heeded)
    deadline = time.monotonic() + 30
    while not (tmp_path / "work" / "ready").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    process.wait(timeout=30)
    assert (tmp_path / "work" / "told").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--work", "here", "--", "true"), "an absolute path"),
        (("--work", "/tmp/../etc", "--", "true"), "an absolute path"),
        (("--work", "/", "--", "true"), "an absolute path"),
        (("--work", "/tmp/w"), "no command"),
        (("--work", "/tmp/w", "--readable", "/is/not/there", "--", "true"), "not there"),
        (("--work", "/tmp/w", "--variable", "NAME", "--", "true"), "NAME=VALUE"),
        (("--work", "/tmp/w", "--seconds", "0", "--", "true"), "whole number"),
        (("--work", "/tmp/w", "--secret", "--", "true"), "is no option"),
    ],
)
@needs_root
def test_wrong_use_is_told_and_nothing_is_run(arguments, said):
    ended = subprocess.run([ISOLATE, *arguments], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "") and said in ended.stderr


@needs_root
def test_without_root_it_says_that_it_needs_it(tmp_path):
    copy = Path(f"/tmp/isolate-{os.getpid()}")
    copy.write_bytes(ISOLATE.read_bytes())
    copy.chmod(0o755)
    try:
        ended = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, "--work", "/tmp/w", "--", "true"],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        copy.unlink()
    assert ended.returncode == 2 and "needs root" in ended.stderr


@needs_root
def test_where_it_may_make_no_root_of_its_own_nothing_is_run(tmp_path):
    """As in a container without the capability for it."""
    fewer = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--"]
    command = [*fewer, ISOLATE, "--work", tmp_path / "work", "--", "touch", tmp_path / "work" / "run"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode != 0 and "Operation not permitted" in ended.stderr
    assert not (tmp_path / "work" / "run").exists()

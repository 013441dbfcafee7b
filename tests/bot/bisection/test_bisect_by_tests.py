"""`torchbench bisect --tests`: builds of a package that a model uses, by the pairs of `torchbench ab`."""

import json
import site
import subprocess
import sys
from pathlib import Path

import pytest
from small_repository import SmallRepository

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
# It makes the wheel itself, as no index may be asked, and lets the build see the torch of this interpreter.
MAKE_WHEEL = """import base64, hashlib, os, pathlib, zipfile
source = pathlib.Path("worksteps.py").read_text()
compile(source, "worksteps.py", "exec")
info = "worksteps-1.0.dist-info"
members = {
    "worksteps.py": source,
    "torch_of_the_tests.pth": SITE + "\\n",
    f"{info}/METADATA": "Metadata-Version: 2.1\\nName: worksteps\\nVersion: 1.0\\n",
    f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
}
record = ""
for name, text in members.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(text.encode())}\\n"
folder = pathlib.Path(os.environ["TORCHBENCH_BUILD_OUT"])
with zipfile.ZipFile(folder / "worksteps-1.0-py3-none-any.whl", "w") as archive:
    for name, text in {**members, f"{info}/RECORD": f"{record}{info}/RECORD,,\\n"}.items():
        archive.writestr(name, text)
"""
PACKAGE = """def work():
    steps = 0
    for _ in range({loops}):
        steps += 1
    return steps
"""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_commit_that_slows_a_test_is_found_by_pairs_of_builds(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="models are imported into a build")
    monkeypatch.setenv("TORCHBENCH_BUILDS", str(tmp_path / "builds"))
    repository = SmallRepository(tmp_path / "package")
    site_packages = next(path for path in site.getsitepackages() if path.endswith("site-packages"))
    for place in range(6):
        text = PACKAGE.format(loops=100_000 if place < 4 else 200_000) + f"# {place}\n"
        (repository.folder / "worksteps.py").write_text(text + ("def broken(:\n" if place == 2 else ""))
        (repository.folder / "make_wheel.py").write_text(f"SITE = {site_packages!r}\n{MAKE_WHEEL}")
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "-m", f"c{place}")
        repository.git("tag", f"c{place}")
    config = tmp_path / "nightly.yaml"
    config.write_text("builds: {requirements: []}\n")
    suite = tmp_path / "works.yaml"
    suite.write_text(
        "name: works\ndescription: That model.\nmodels: [works]\ntests: [eval]\npreset: tiny\nthreads: 1\n"
    )
    out, answer = tmp_path / "out.json", tmp_path / "answer.md"

    ended = subprocess.run(
        [
            *(sys.executable, "-m", "bot", "bisect", "--repo", repository.folder, "--good", "c0", "--bad", "c5"),
            *("--build", "python make_wheel.py", "--tests", "works", "--suite", suite, "--subject", "worksteps"),
            *("--models", HERE / "model_of_package", "--config", config, "--work", tmp_path / "work"),
            *("--threads", "1", "--budget", "0.1", "--beyond", "0.2", "--json", out, "--markdown", answer),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 1, ended.stdout + ended.stderr
    report = json.loads(out.read_text())
    assert [one["commits"] for one in report["changes"]] == [[repository.git("rev-parse", "c4")]]
    assert 0.5 < report["changes"][0]["change"] < 1.5
    assert {one["commit"] for one in report["builds"] if not one["ok"]} <= {repository.git("rev-parse", "c2")}
    (inside,) = report["attribution"]
    assert (inside["base"], inside["head"]) == (repository.git("rev-parse", "c3"), repository.git("rev-parse", "c4"))
    (profiled,) = inside["attribution"]["tests"]
    (account,) = profiled["accounts"]
    python = next(row for row in account["rows"] if row["kind"] == "python")
    assert profiled["pairs"] == 6 and python["head"] > python["base"], "the package is Python, and no operator"
    assert len(inside["traces"]) == 2 and all(Path(trace).is_file() for trace in inside["traces"])
    assert "What got slower inside" in answer.read_text()
    again = subprocess.run(ended.args, cwd=ROOT, capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "by turns" not in again.stdout and json.loads(out.read_text()) == report

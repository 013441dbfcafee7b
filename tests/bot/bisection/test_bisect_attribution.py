"""What a culprit changed inside the model: profiled once, stored, told, and no verdict lost where it cannot be."""

import dataclasses
import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from bisecting import noisy, search, verdict_of
from made_profiles import HOST, profiles
from small_repository import SmallRepository

from baselines.store import open_store
from bot import bisect as bisect_command
from bot.bisection import instruments
from bot.bisection.account import Found, change_sentences
from bot.bisection.attributing import Attributing, sides_of, touched_files
from bot.bisection.document import Asked, Document, Made
from bot.bisection.git_range import GitRange
from bot.bisection.picture import draw_changes
from bot.bisection.report import content, markdown
from torchbenchmark.errors import BenchmarkError
from torchbenchmark.profiles.difference import attribute
from torchbenchmark.profiles.measuring import Profiled

ASKED = Asked(good="0", bad="16", tests=("made",))
EVIL = "csrc/@everyone|`gelu`\n<b>.cpp"


class MadeFiles:
    """Each commit touches a file of its name; some hold gelu."""

    def __init__(self, gelu: dict[str, str] | None = None) -> None:
        self.gelu = gelu or {}

    def paths(self, commit: str) -> list[str]:
        return [self.gelu.get(commit, f"docs/{commit}.txt")]

    def text(self, commit: str, path: str, largest: int) -> str | None:
        return None


class MadeProfiler:
    """Profiles in which gelu takes twice as long; or it fails."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self.problem = problem

    def profile(self, base, head, pairs, out, traces, touched=None) -> Profiled:
        self.asked.append((base, head))
        if self.problem is not None:
            raise self.problem
        traces.mkdir(parents=True, exist_ok=True)
        for side in ("base", "head"):
            (traces / f"made-{side}.json.gz").write_bytes(side.encode())
        slower = (({**HOST, "aten::gelu": (2, 400)}),)
        return Profiled(None, attribute([profiles((HOST,), slower, pairs=pairs)], touched=touched))


class Bucket:
    """A folder that says it is a bucket."""

    def __init__(self, folder: Path) -> None:
        self.folder = open_store(str(folder))
        self.location = "s3://bucket/prefix"

    def __getattr__(self, name: str):
        return getattr(self.folder, name)


@pytest.fixture
def attributing(tmp_path):
    def make(profiler: MadeProfiler, files=None, store=None) -> Attributing:
        store = store or open_store(str(tmp_path / "store"))
        return Attributing(files or MadeFiles(), store, profiler, tmp_path / "work", lambda text: None)

    return make


def found(culprits: dict[int, float], broken=()) -> Found:
    verdict, state = verdict_of(search(16), noisy(culprits, seed=3), broken)
    return Found(Document(asked=ASKED, search=state), verdict, {str(place): f"c{place}" for place in range(17)})


def test_a_culprit_is_held_against_the_commit_before_it_and_told_with_what_it_touched(attributing, tmp_path):
    profiler = MadeProfiler()
    done = attributing(profiler, MadeFiles({"5": "src/gelu.cpp"})).of(found({5: 0.08}))
    assert profiler.asked == [("4", "5")]
    told, fit = change_sentences(done)
    assert told.startswith("test_eval[made-cpu-eager]: aten::gelu +") and "% of its time, " in told
    assert fit == "the commit touches src/gelu.cpp, which holds gelu (slower)"
    text = markdown(done)
    assert "### What got slower inside, `4` to `5`" in text and "| `aten::gelu` | CPU |" in text
    assert "`slower; touched: src/gelu.cpp`" in text
    (stored,) = content(done)["attribution"]
    assert stored["fits"][0]["causes"] == {"aten::gelu": ["src/gelu.cpp"]}
    assert [Path(trace).name for trace in stored["traces"]] == ["made-base.json.gz", "made-head.json.gz"]
    assert json.loads(json.dumps(content(done)))["verdict"] == "culprit"


def test_what_was_profiled_is_not_profiled_again_and_traces_go_where_the_bisection_is(attributing, tmp_path):
    bucket, profiler = Bucket(tmp_path / "bucket"), MadeProfiler()
    once = attributing(profiler, store=bucket).of(found({5: 0.08}))
    again = attributing(profiler, store=bucket).of(found({5: 0.08}))
    assert again == once and len(profiler.asked) == 1
    key = f"bisections/{ASKED.key}/4-5"
    assert bucket.list("bisections/") == [f"{key}.json", f"{key}/made-base.json.gz", f"{key}/made-head.json.gz"]
    assert once.attributed[0].traces == (f"{key}/made-base.json.gz", f"{key}/made-head.json.gz")


@pytest.mark.parametrize(
    "problem",
    [BenchmarkError("no profile today"), OSError(28, "No space left on device"), KeyError("unheard of")],
)
def test_a_profile_that_fails_is_told_in_a_sentence_and_leaves_the_verdict(attributing, problem):
    before = found({5: 0.08})
    done = attributing(MadeProfiler(problem)).of(before)
    assert dataclasses.replace(done, attributed=()) == before
    (said,) = change_sentences(done)
    assert said.startswith("what got slower inside is not known: ") and str(problem) in said
    assert "It is not known: `" in markdown(done) and content(done)["attribution"][0]["attribution"] is None
    profiler = MadeProfiler()
    assert attributing(profiler).of(before).attributed[0].attribution is not None, "it is tried again"


def test_what_a_store_holds_and_cannot_be_read_is_a_sentence_too(attributing, tmp_path):
    open_store(str(tmp_path / "store")).create(f"bisections/{ASKED.key}/4-5.json", b"{}")
    (said,) = change_sentences(attributing(MadeProfiler()).of(found({5: 0.08})))
    assert "remove it to profile anew" in said


def test_a_set_is_held_against_the_build_before_it_and_ordered_by_what_its_commits_touched(attributing):
    before = found({5: 0.08}, broken=(4, 5, 6))
    (suspects,) = before.verdict.suspects
    assert suspects.inseparable == ("4", "5", "6", "7")
    profiler = MadeProfiler()
    done = attributing(profiler, MadeFiles({"6": EVIL})).of(before)
    ((base, head),) = profiler.asked
    assert (base, head) == sides_of(before.document.search, suspects) and (base, head) == ("3", "7")
    assert [fit.commit for fit in done.attributed[0].fits] == ["6", "4", "5", "7"]
    assert change_sentences(done)[1].startswith("of 4 commits 6 fits best: it touches ")
    text = markdown(done)
    assert "1. `6`, 100 % of what differs: `" in text and "2. `4`: nothing that differs" in text
    outside = "".join(part for at, part in enumerate(text.split("`")) if at % 2 == 0)
    assert "@everyone" not in outside and "<b>" not in outside


def test_each_of_several_culprits_is_held_against_the_build_before_it_and_equal_ends_are_not_profiled(attributing):
    profiler = MadeProfiler()
    before = found({3: 0.08, 12: 0.1})
    done = attributing(profiler).of(before)
    assert profiler.asked == [("2", "3"), ("11", "12")] and len(done.attributed) == 2
    nothing = MadeProfiler()
    assert attributing(nothing).of(found({})).attributed == () and nothing.asked == []


def test_of_a_merge_whose_branch_made_the_change_the_branch_is_profiled(attributing):
    profiler = MadeProfiler()
    merged = dataclasses.replace(found({5: 0.08}), branches=(found({12: 0.08}),))
    done = attributing(profiler).of(merged)
    assert profiler.asked == [("11", "12")] and done.attributed == () and done.branches[0].attributed
    assert len(change_sentences(done)) == 1 and "`11` to `12`" in markdown(done)


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="pictures are drawn with matplotlib")
def test_bars_are_drawn_beside_the_picture_of_the_posterior(attributing, tmp_path):
    done = attributing(MadeProfiler()).of(found({5: 0.08}))
    drawn = draw_changes(done, tmp_path / "posterior.png")
    (file,) = drawn.values()
    assert file == tmp_path / "posterior-test_eval-made-cpu-eager-5.png" and file.read_bytes().startswith(b"\x89PNG")
    assert "![stacked bars of both builds](<posterior-x.png>)" in markdown(
        done, pictures={next(iter(drawn)): "posterior-x.png"}
    )


def test_the_files_of_a_commit_are_read_from_the_repository_whatever_they_are_called(tmp_path):
    repository = SmallRepository(tmp_path / "package")
    repository.line(1)
    evil = repository.folder / "src" / "-x\n`@everyone` é.cpp"
    evil.parent.mkdir()
    evil.write_text("TORCH_IMPL_FUNC(gelu_out)")
    (repository.folder / "large.cpp").write_text("x" * 3_000_000)
    (repository.folder / "link.cpp").symlink_to("/etc/passwd")
    repository.commit("c2", 5)
    before = repository.fingerprint()
    files = touched_files(GitRange(repository.folder, "c0", "c2"), repository.git("rev-parse", "c2"))
    assert set(files.paths) == {"src/-x\n`@everyone` é.cpp", "large.cpp", "link.cpp", "work.py"}
    assert files.sources["src/-x\n`@everyone` é.cpp"] == "TORCH_IMPL_FUNC(gelu_out)"
    assert "large.cpp" not in files.sources and files.sources["link.cpp"] == "/etc/passwd", "the link, not its target"
    assert repository.fingerprint() == before


class MadeInstrument(instruments.TestsInstrument):
    """Builds nothing, and measures what a commit's place says."""

    def build(self, commit):
        return Made(commit=commit, ok=True)

    def measure(self, good, visit, keep):
        place = PLACES.index(visit.commit)
        level = noisy({3: 0.1}, seed=visit.number)
        return visit.model_copy(update={"values": tuple(level(place) for _ in range(visit.n))})

    def profile(self, *arguments, **options):
        return PROFILER.profile(*arguments, **options)


PLACES: list[str] = []
PROFILER = MadeProfiler()


@pytest.fixture
def command(tmp_path, monkeypatch):
    """`torchbench bisect --tests` on a small repository and a made instrument: its exit code and its files."""
    repository = SmallRepository(tmp_path / "package")
    repository.line(5)
    PLACES[:] = [repository.git("rev-parse", f"c{place}") for place in range(6)]
    PROFILER.asked.clear()

    def instrument(*arguments):
        return MadeInstrument(None, None, "cpu_time", tmp_path, None)

    monkeypatch.setattr(bisect_command, "_instrument", instrument)
    monkeypatch.setattr("torchbenchmark.cli.end_children_on_termination", lambda: None)

    def run(**options):
        answer, drawn = tmp_path / "answer" / "a.md", tmp_path / "pictures" / "posterior.svg"
        code = bisect_command.bisect(
            **{"repo": repository.folder, "good": "c0", "bad": "c5", "tests": ["works"], "work": tmp_path / "work"},
            **{"json_file": tmp_path / "a.json", "markdown_file": answer},
            **({"picture": drawn} if find_spec("matplotlib") else {}),
            **options,
        )
        return code, json.loads((tmp_path / "a.json").read_text()), answer

    return run


def test_the_command_profiles_the_culprit_tells_it_and_links_its_bars(command, capsys):
    code, told, answer = command()
    assert code == 1 and PROFILER.asked == [(PLACES[2], PLACES[3])]
    assert told["attribution"][0]["head"] == PLACES[3]
    said = " ".join(capsys.readouterr().out.split())
    assert "by turns" in said and "aten::gelu +" in said
    if find_spec("matplotlib"):
        (link,) = re.findall(r"!\[stacked bars of both builds\]\(<(.*?)>\)", answer.read_text())
        assert link.startswith("../pictures/posterior-test_eval-made-cpu-eager-")
        assert (answer.parent / link).read_text().startswith("<?xml")
    assert command()[1]["attribution"] == told["attribution"] and len(PROFILER.asked) == 1
    assert all(Path(trace).is_file() for trace in told["attribution"][0]["traces"])


def test_without_attribution_nothing_is_profiled(command):
    code, told, answer = command(no_attribution=True)
    assert code == 1 and PROFILER.asked == [] and told["attribution"] == []
    assert "inside" not in answer.read_text()

"""The status comment of a `/benchmark` request: one paragraph, edited in place, which says how far it has come.

It always says for which commit it is. What others wrote (logins, reasons) stands in code spans.
"""

from bot.benchmark_request import BenchmarkRequest
from torchbenchmark.foreign_text import inline_code
from torchbenchmark.quantity import counted

SHORT = 12  # digits of a commit


def queued(request: BenchmarkRequest, run_url: str = "") -> str:
    return _status(
        request, "queued", "It waits for a machine that measures, and is measured once one is free.", run_url
    )


def building(request: BenchmarkRequest, side: str, run_url: str = "") -> str:
    """`side`: base or head."""
    commit = request.base if side == "base" else request.head
    return _status(request, f"building {side}", f"Commit `{commit[:SHORT]}` is being built.", run_url)


def measuring(request: BenchmarkRequest, part: int, parts: int, run_url: str = "") -> str:
    told = f"Both builds are there and are measured side by side: part {part} of {parts}."
    return _status(request, f"measuring {part} of {parts}", told, run_url)


def profiling(request: BenchmarkRequest, run_url: str = "") -> str:
    return _status(request, "profiling", "Both builds are profiled by turns, to tell what differs inside.", run_url)


def done(request: BenchmarkRequest, verdict: str, run_url: str = "") -> str:
    """`verdict`: the verdict in a line of Markdown; the comment with the numbers is another."""
    return _status(request, "done", f"{verdict} The numbers are in a comment of their own.", run_url)


def failed(request: BenchmarkRequest, why: str, run_url: str = "") -> str:
    """`why` is plain text, of whoever."""
    return _status(request, "failed", f"Nothing was measured: {inline_code(why)}.", run_url)


def cancelled(request: BenchmarkRequest, run_url: str = "") -> str:
    told = (
        "It was ended before it had a verdict: by `/benchmark cancel`, by hand, or because a newer request of this "
        "pull request took its place in the queue."
    )
    return _status(request, "cancelled", told, run_url)


def what_is_asked(request: BenchmarkRequest) -> str:
    """The commits and the tests, in a sentence."""
    base = "the merge base" if request.base_is == "merge-base" else "as named"
    return (
        f"Head `{request.head[:SHORT]}` against base `{request.base[:SHORT]}` ({base}): "
        f"{counted(len(request.tests), 'test')} on {request.device}, at most {request.pairs} "
        "pairs of each (a pair: both builds, each measured once)."
    )


def _status(request: BenchmarkRequest, state: str, told: str, run_url: str) -> str:
    where = f" [The run on GitHub Actions]({run_url})." if run_url else ""
    return (
        f"**Benchmark of `{request.head[:SHORT]}`: {state}.** {told}\n\n"
        f"{what_is_asked(request)} Asked for by {inline_code(request.asked_by)}. "
        f"A later push needs a new command.{where}\n"
    )

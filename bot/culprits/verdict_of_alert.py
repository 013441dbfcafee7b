"""A verdict is written to the alert that was bisected, and told by its issue."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from baselines.store import Store
from bot.bisection.account import EXIT_CODES, Found, change_text, ends, merge_sentence
from bot.github.alert import Alert
from bot.github.alert_store import change_alerts
from bot.github.bisected import MOST_COMMITS, MOST_PATHS, Bisected, BisectedChange, SuspectCommit
from torchbenchmark.foreign_text import one_line


def bisected(
    found: Found, episode: int, now: datetime | None = None, paths: Callable[[str], Sequence[str]] = lambda commit: ()
) -> Bisected:
    """A verdict as an alert keeps it. `paths` are those that a commit touched."""
    verdict, search = found.verdict, found.document.search
    return Bisected(
        at=now or datetime.now(UTC),
        episode=episode,
        verdict=verdict.kind,
        good=search.good,
        bad=search.bad,
        changes=tuple(
            BisectedChange(
                commits=tuple(
                    SuspectCommit(
                        commit=commit,
                        subject=one_line(found.subjects.get(commit, "")),
                        paths=tuple(map(one_line, paths(commit)[:MOST_PATHS])),
                    )
                    for commit in one.inseparable[:MOST_COMMITS]
                ),
                more=max(0, len(one.inseparable) - MOST_COMMITS),
                told=one_line(change_text(found.document, one)),
                probability=one.probability,
                certainty=one.certainty,
            )
            for one in verdict.suspects
        ),
        nothing=verdict.nothing,
        ends=ends(found.document) if found.posterior is not None else "",
        reason=one_line(verdict.reason),
        environment=tuple(map(one_line, verdict.environment)),
        of_merge=one_line(merge_sentence(found)),
    )


def write_verdict(store: Store, alert: Alert, verdict: Bisected) -> Alert | None:
    """Store a verdict with its alert, and return it; None if the alert is gone, or open for another time by now."""
    written: list[Alert] = []

    def write(alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
        written.clear()
        return tuple(_with(one, verdict, written) if one.key == alert.key else one for one in alerts)

    change_alerts(store, alert.suite, alert.machine_class, write)
    return written[0] if written else None


def _with(alert: Alert, verdict: Bisected, written: list[Alert]) -> Alert:
    if len(alert.earlier) != verdict.episode:
        return alert
    after = alert.model_copy(update={"bisected": verdict, "revision": alert.revision + 1})
    written.append(after)
    return after


def told_before(verdict: Bisected) -> str:
    """The verdict of before, on one line of plain text."""
    changes = "; ".join(_change(one.commits, one.more, one.told, one.probability) for one in verdict.changes)
    what = changes or "; ".join(verdict.environment) or verdict.ends or verdict.reason
    return f"{verdict.verdict}{': ' + what if what else ''}"


def _change(commits: Sequence[SuspectCommit], more: int, told: str, probability: float) -> str:
    names = ", ".join(f"{one.commit[:12]} “{one.subject}”" for one in commits) + (f" and {more} more" if more else "")
    return f"{names} ({told}; probability {probability:.3f})"


def exit_code_of(verdict: Bisected) -> int:
    return next((code for kind, code in EXIT_CODES.items() if kind == verdict.verdict), 2)

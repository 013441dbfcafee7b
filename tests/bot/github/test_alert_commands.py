"""Conversations below the issues of alerts: what is said, what the bot replies, and what has changed since."""

import inspect
import re
from datetime import timedelta

import pytest
from alert_talk import KEY, WHERE, AlertTalk, alert_of, at
from conversation import OTHER_BOT, STRANGER
from github_servers import own_github
from night_factory import A, B

from bot import event_command
from bot.errors import BotError
from bot.github.alert import Episode
from bot.github.alert_store import change_alerts, read_alerts
from bot.github.bisected import Bisected
from bot.github.commands.all_commands import names_at

RIGHT = ("/ack", "/expected", "/noise", "/snooze 7d", "/bisect")
CLOSED = {"closed": at(5), "closed_because": "recovered for 3 nights", "recovered_since": at(2), "recovered_nights": 3}


@pytest.fixture
def talk(tmp_path, monkeypatch):
    with own_github(tmp_path) as hub:
        hub.use(monkeypatch)
        yield AlertTalk(hub, tmp_path, monkeypatch)


@pytest.fixture
def alert(talk):
    """The number of the issue of an open alert of something slower."""
    return talk.open_alert()


def text(snapshot: str) -> str:
    """A reply, of which long lines are written as several here."""
    return re.sub(r"(?<!\n)\n(?!\n|- )\s*", " ", inspect.cleandoc(snapshot))


def untouched(talk, number, before):
    """Whether alert and issue are what they were."""
    issue = talk.issue(number)
    return (talk.alert, issue.body, issue.state, talk.labels(number)) == before


def state(talk, number):
    issue = talk.issue(number)
    return talk.alert, issue.body, issue.state, talk.labels(number)


def test_an_alert_is_acknowledged(talk, alert):
    assert talk.says("writer", "/ack the new allocator, #12", on=alert) == text("""
        **Acknowledged** by `writer`: `the new allocator, #12`. The alert stays open, is measured every night,
        and closes when its tests are good again. If it comes back after that, it is to be acknowledged anew.
        """)
    assert talk.alert.acknowledged.by == "writer" and talk.alert.acknowledged.why == "the new allocator, #12"
    assert "alert: acknowledged" in talk.labels(alert) and "Acknowledged by writer" in talk.issue(alert).body
    assert talk.says("maintainer", "/ack", on=alert) == text("`writer` looks after this alert already.")
    assert talk.alert.acknowledged.by == "writer"


def test_a_change_is_expected(talk, alert):
    assert talk.says("writer", "/expected a fix of the results", on=alert) == text("""
        **Expected** by `writer`: `a fix of the results`. What is normal begins anew:

        - `test_eval[hf_Bert-cpu-eager]` from the night of 2026-03-02 02:00 UTC on
        - `test_eval[resnet50-cpu-eager]` from the night of 2026-03-02 02:00 UTC on

        The alert is closed. Nights that begin from now on are held against that level; what gets slower than
        it is a new alert.
        """)
    assert talk.alert.accepted.by == "writer" and set(talk.alert.accepted.since) == {A, B}
    assert talk.issue(alert).state == "closed" and "alert: expected" in talk.labels(alert)


def test_an_alert_is_noise(talk, alert):
    reply = talk.says("writer", "/noise a neighbour on the machine", on=alert)
    assert reply.replace(f"{talk.alert.noise.until:%Y-%m-%d}", "DAY") == text("""
        **Noise** by `writer`: `a neighbour on the machine`. The alert is closed, and counts against the
        precision of the bot. Until DAY its 2 tests must go beyond what was seen here to be called again.
        """)
    assert talk.alert.noise.until - talk.alert.noise.at == timedelta(days=30)
    assert talk.issue(alert).state == "closed" and "alert: noise" in talk.labels(alert)


@pytest.mark.parametrize(
    ("said", "time"),
    [("12h", timedelta(hours=12)), ("7d", timedelta(days=7)), ("2w", timedelta(days=14)), ("2W", timedelta(days=14))],
)
def test_an_alert_is_snoozed_from_the_comment_on(talk, alert, said, time):
    event = talk.say("writer", f"/snooze {said} until the driver is there", on=alert)
    reply = talk.hear(event)
    until = talk.alert.snoozed.until
    assert (until - time).strftime("%Y-%m-%dT%H:%M:%SZ") == event["comment"]["created_at"]
    assert reply.replace(f"{until:%Y-%m-%d %H:%M}", "TIME") == text("""
        **Snoozed** until TIME UTC by `writer`: `until the driver is there`. The alert is measured every
        night, and nobody is told of it until then. If it is still there, it speaks again.
        """)
    assert talk.alert.is_open and "alert: snoozed" in talk.labels(alert)


def test_an_alert_is_bisected_between_its_nights(talk, alert):
    assert talk.says("writer", "/bisect", on=alert) == text("""
        **Bisecting** between its good and its slow night, asked for by `writer`. The workflow `bisect.yml`
        builds commits and measures them side by side, which takes hours; this issue names the commit when it
        is found. Where a run ends without one, another `/bisect` goes on with it.
        """)
    assert talk.bisections == [{"signal": KEY}]


def test_an_alert_is_bisected_between_two_commits(talk, alert):
    assert talk.says("writer", "/bisect v2.12.0..viable/strict", on=alert) == text("""
        **Bisecting** between `v2.12.0` and `viable/strict`, asked for by `writer`. The workflow `bisect.yml`
        builds commits and measures them side by side, which takes hours; this issue names the commit when it
        is found. Where a run ends without one, another `/bisect` goes on with it.
        """)
    assert talk.bisections == [{"signal": KEY, "good": "v2.12.0", "bad": "viable/strict"}]


def test_help_lists_what_can_be_said_and_is_for_all(talk, alert):
    told = talk.says(STRANGER, "/help", on=alert)
    assert told == text("""
        **What can be said here**, at the start of a line, one command a comment, by those who may write in
        this repository:

        - `/ack [reason]`: you look after it; the alert stays open, and a relapse is to be acknowledged anew
        - `/expected [reason]`: the change is meant: the level since its onset is what is normal, and the
          alert is over
        - `/noise [reason]`: nothing has changed: the alert is over, its tests must go further to be called
          again for 30 days, and it counts against the precision of the bot
        - `/snooze 7d [reason]`: no comment and no mention for that long (`12h`, `7d`, `2w`; at most 90 days)
        - `/bisect [GOOD..BAD]`: look for the commit, between the last good night and the first slow one, or
          between two commits, branches or tags
        - `/help`: this list
        """)
    assert talk.says("reader", "/help me", on=alert) == told


@pytest.mark.parametrize(("kind", "more"), [("regression", {"/expected", "/bisect"}), ("failure", set())])
def test_the_issue_of_an_alert_names_the_commands_that_it_takes(talk, kind, more):
    number = talk.open_alert(kind=kind)
    _, _, told = talk.issue(number).body.partition("`issue-commands.yml` is installed):")
    named = set(re.findall(r"`(/[a-z]+)[^`]*`", told)) - {"/help"}
    assert named == {"/ack", "/noise", "/snooze", *more} and named <= {f"/{name}" for name in names_at("alert")}
    for said in named - {"/snooze"}:
        talk.keep(alert_of(kind=kind))
        assert "**Not" not in talk.says("writer", said, on=number)


WRONG = (
    (
        "/ack " + "long " * 50,
        """
        **Not understood:** the reason has 249 characters, and the issue keeps 200. Shorten it, and say the
        rest in a comment of its own.

        `/ack [reason]`: you look after it; the alert stays open, and a relapse is to be acknowledged anew
        """,
    ),
    (
        "/expected " + "x" * 201,
        """
        **Not understood:** the reason has 201 characters, and the issue keeps 200. Shorten it, and say the
        rest in a comment of its own.

        `/expected [reason]`: the change is meant: the level since its onset is what is normal, and the alert
        is over
        """,
    ),
    (
        "/noise " + "x" * 201,
        """
        **Not understood:** the reason has 201 characters, and the issue keeps 200. Shorten it, and say the
        rest in a comment of its own.

        `/noise [reason]`: nothing has changed: the alert is over, its tests must go further to be called
        again for 30 days, and it counts against the precision of the bot
        """,
    ),
    (
        "/snooze",
        """
        **Not understood:** `/snooze` needs a time. Say a number and its unit in one word, such as `7d`,
        and at most 90 days.

        `/snooze 7d [reason]`: no comment and no mention for that long (`12h`, `7d`, `2w`; at most 90 days)
        """,
    ),
    (
        "/snooze a while",
        """
        **Not understood:** `a` is no time. Say a number and its unit in one word, such as `7d`, and at most 90 days.

        `/snooze 7d [reason]`: no comment and no mention for that long (`12h`, `7d`, `2w`; at most 90 days)
        """,
    ),
    (
        "/snooze 0d",
        """
        **Not understood:** `0d` is no time. Say a number and its unit in one word, such as `7d`, and at most 90 days.

        `/snooze 7d [reason]`: no comment and no mention for that long (`12h`, `7d`, `2w`; at most 90 days)
        """,
    ),
    (
        "/snooze 13w",
        """
        **Not understood:** `13w` is too long. Say a number and its unit in one word, such as `7d`, and at most 90 days.

        `/snooze 7d [reason]`: no comment and no mention for that long (`12h`, `7d`, `2w`; at most 90 days)
        """,
    ),
    (
        "/snooze 7d " + "x" * 201,
        """
        **Not understood:** the reason has 201 characters, and the issue keeps 200. Shorten it, and say the
        rest in a comment of its own.

        `/snooze 7d [reason]`: no comment and no mention for that long (`12h`, `7d`, `2w`; at most 90 days)
        """,
    ),
    (
        "/bisect main",
        """
        **Not understood:** `main` is no range. Say two commits, branches or tags with two dots between, or
        none.

        `/bisect [GOOD..BAD]`: look for the commit, between the last good night and the first slow one, or
        between two commits, branches or tags
        """,
    ),
    (
        "/bisect a...b",
        """
        **Not understood:** `a...b` is no range. Say two commits, branches or tags with two dots between, or
        none.

        `/bisect [GOOD..BAD]`: look for the commit, between the last good night and the first slow one, or
        between two commits, branches or tags
        """,
    ),
    (
        "/bisect --all..main",
        """
        **Not understood:** `--all` names no commit, branch or tag. Say two commits, branches or tags with two
        dots between, or none.

        `/bisect [GOOD..BAD]`: look for the commit, between the last good night and the first slow one, or
        between two commits, branches or tags
        """,
    ),
    (
        "/bisect a..",
        """
        **Not understood:** `a..` is no range. Say two commits, branches or tags with two dots between, or
        none.

        `/bisect [GOOD..BAD]`: look for the commit, between the last good night and the first slow one, or
        between two commits, branches or tags
        """,
    ),
    (
        "/bisect main..main",
        """
        **Not understood:** both ends are `main`. Say two commits, branches or tags with two dots between, or
        none.

        `/bisect [GOOD..BAD]`: look for the commit, between the last good night and the first slow one, or
        between two commits, branches or tags
        """,
    ),
    (
        "/bisect a..b fast",
        """
        **Not understood:** `/bisect` takes one range, and `a..b fast` is more. Say two commits, branches or
        tags with two dots between, or none.

        `/bisect [GOOD..BAD]`: look for the commit, between the last good night and the first slow one, or
        between two commits, branches or tags
        """,
    ),
    ("/ackk", "**Not understood:** there is no command `/ackk`. Did you mean `/ack`?"),
    ("/akc", "**Not understood:** there is no command `/akc`. Did you mean `/ack`?"),
    (
        "/ack\n/noise",
        """
        **Not understood:** the comment has 2 commands, so none of them is done. Write each in a comment of
        its own.
        """,
    ),
)


@pytest.mark.parametrize(("said", "reply"), WRONG)
def test_wrong_use_is_answered_with_what_is_valid(talk, alert, said, reply):
    before = state(talk, alert)
    assert talk.says("writer", said, on=alert) == text(reply)
    assert untouched(talk, alert, before) and talk.bisections == []


NOT_PERMITTED = (
    "**Not done:** you may not command the bot here. Ask somebody who may: whose role in this repository is write, "
    "maintain or admin."
)


@pytest.mark.parametrize("said", RIGHT)
def test_who_may_not_command_is_told_so_and_in_a_while_no_more(talk, alert, said):
    before = state(talk, alert)
    assert talk.says("reader", said, on=alert) == NOT_PERMITTED
    assert talk.says(STRANGER, said, on=alert) == NOT_PERMITTED
    assert talk.says("triager", said, on=alert) == NOT_PERMITTED
    assert [talk.says("reader", said, on=alert) for _ in range(3)] == [NOT_PERMITTED, NOT_PERMITTED, None]
    assert untouched(talk, alert, before) and talk.bisections == []


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        (
            "/ack",
            """
        **Not done:** this alert is closed already (recovered for 3 nights). Nothing is to be done about it.
        """,
        ),
        (
            "/expected",
            """
        **Not done:** this alert is closed already (recovered for 3 nights). Nothing is to be done about it.
        """,
        ),
        (
            "/snooze 7d",
            """
        **Not done:** this alert is closed already (recovered for 3 nights). Nothing is to be done about it.
        """,
        ),
    ],
)
def test_of_a_closed_alert_there_is_nothing_to_decide(talk, said, reply):
    number = talk.open_alert(**CLOSED)
    before = state(talk, number)
    assert talk.says("writer", said, on=number) == text(reply)
    assert untouched(talk, number, before)


def test_what_has_recovered_can_be_called_noise_and_bisected_afterwards(talk):
    number = talk.open_alert(**CLOSED)
    assert talk.says("writer", "/bisect", on=number).startswith("**Bisecting**")
    assert talk.bisections[0]["signal"] == KEY
    assert talk.says("writer", "/noise", on=number).startswith("**Noise**")
    assert talk.alert.noise is not None and talk.issue(number).state == "closed"


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        (
            "/noise",
            """
        **Not done:** this alert is closed already (accepted as the new level by maintainer). Nothing is to be
        done about it.
        """,
        ),
        (
            "/expected",
            """
        **Expected** by `maintainer`. What is normal begins anew:

        - `test_eval[hf_Bert-cpu-eager]` from the night of 2026-03-02 02:00 UTC on
        - `test_eval[resnet50-cpu-eager]` from the night of 2026-03-02 02:00 UTC on

        The alert is closed. Nights that begin from now on are held against that level; what gets slower than
        it is a new alert.
        """,
        ),
        (
            "/ack",
            """
        **Not done:** this alert is closed already (accepted as the new level by maintainer). Nothing is to be
        done about it.
        """,
        ),
    ],
)
def test_what_was_decided_is_not_decided_twice(talk, alert, said, reply):
    talk.says("maintainer", "/expected", on=alert)
    before = talk.alert
    assert talk.says("writer", said, on=alert) == text(reply)
    assert talk.alert == before


@pytest.mark.parametrize(
    ("kind", "said", "reply"),
    [
        (
            "failure",
            "/expected",
            """
        **Not done:** tests that fail have no level to expect. Leave them out of the suite, or say `/ack`.
        """,
        ),
        (
            "failure",
            "/bisect",
            """
        **Not done:** the workflow bisects times, and these tests fail. On a machine with a clone, `torchbench
        bisect --from-signal 00000000000000aa` does it.
        """,
        ),
        (
            "improvement",
            "/expected",
            """
        **Not done:** what this issue tells is what is normal already. Nothing is to be done about it.
        """,
        ),
        (
            "count",
            "/noise",
            """
        **Not done:** counts are exact, so there is no noise in what this issue tells. Say `/ack` to take note
        of it.
        """,
        ),
        (
            "count",
            "/bisect a..b",
            """
        **Not done:** there is no range of commits behind a change of counts. Nothing is bisected.
        """,
        ),
        (
            "environment",
            "/noise",
            """
        **Not done:** the environment is as it was recorded, so there is no noise in what this issue tells.
        Say `/ack` to take note of it.
        """,
        ),
        (
            "environment",
            "/bisect",
            """
        **Not done:** there is no range of commits behind a change of the environment. Nothing is bisected.
        """,
        ),
    ],
)
def test_not_every_alert_takes_every_command(talk, kind, said, reply):
    number = talk.open_alert(kind=kind, intervals=(), effects={}, signal="")
    before = state(talk, number)
    assert talk.says("writer", said, on=number) == text(reply)
    assert untouched(talk, number, before) and talk.bisections == []


def test_a_flaky_test_is_noise_too(talk):
    number = talk.open_alert(kind="failure", intervals=(), effects={}, signal="")
    assert talk.says("writer", "/noise", on=number).replace(f"{talk.alert.noise.until:%Y-%m-%d}", "DAY") == text("""
        **Noise** by `writer`. The alert is closed, and counts against the precision of the bot. Until DAY its
        2 tests must fail for longer to be called again.
        """)


def test_an_alert_that_has_its_verdict_is_bisected_again_only_where_a_range_is_named(talk):
    verdict = Bisected(at=at(3), episode=0, verdict="culprit", good="a" * 40, bad="b" * 40)
    number = talk.open_alert(bisected=verdict)
    assert talk.says("writer", "/bisect", on=number) == text("""
        **Not done:** it was bisected on 2026-03-04, and the issue tells the verdict (`culprit`). To look
        again, name a range: `/bisect GOOD..BAD`.
        """)
    assert talk.says("writer", "/bisect main~3..main", on=number).startswith("**Not understood:**")
    assert talk.says("writer", "/bisect v1..main", on=number).startswith("**Bisecting** between `v1` and `main`")
    assert len(talk.bisections) == 1


def test_an_alert_of_the_total_alone_has_nothing_to_compare_commits_by(talk):
    number = talk.open_alert(tests=("total",), intervals=(), effects={}, signal="")
    assert talk.says("writer", "/bisect", on=number) == text("""
        **Not done:** only the total has moved, and no test of its own. There is nothing to compare commits
        by.
        """)


def test_where_no_repository_of_the_subject_is_named_nothing_is_bisected(talk, alert, monkeypatch):
    monkeypatch.setenv("TORCHBENCH_BISECT_REPO", "")
    assert talk.says("writer", "/bisect", on=alert) == text("""
        **Not done:** this installation names no repository of the subject, so there are no commits to look
        through. Set the variable `TORCHBENCH_BISECT_REPO`.
        """)
    assert talk.bisections == []


@pytest.mark.parametrize("said", [*RIGHT, "/help", "/ackk", "/snooze never"])
def test_what_is_no_new_words_of_a_person_on_an_issue_of_the_bot_is_silence(talk, alert, said):
    copied = talk.talk.open_issue(talk.issue(alert).body, by=STRANGER)
    foreign = talk.talk.open_issue("What is slower here?", by="writer")
    before = state(talk, alert)
    for event in (
        talk.edit(talk.say("writer", "hello", on=alert), said),
        talk.say(OTHER_BOT, said, on=alert),
        talk.say("writer", f"```\n{said}\n```", on=alert),
        talk.say("writer", f"    {said}", on=alert),
        talk.say("writer", f"> {said}", on=alert),
        talk.say("writer", f"say {said}", on=alert),
        talk.say("writer", f"<!--\n{said}\n-->", on=alert),
        talk.say("writer", said, on=copied),
        talk.say("writer", said, on=foreign),
    ):
        assert talk.decide(event) is None
        assert talk.talk.answers(event["issue"]["number"]) == [] and talk.talk.reactions(event) == []
    assert untouched(talk, alert, before) and talk.bisections == []


@pytest.mark.parametrize("said", [*RIGHT, "/help", "/snooze never"])
def test_jobs_that_are_started_again_change_nothing_twice_and_reply_once(talk, alert, said):
    event = talk.say("writer", said, on=alert)
    left = [talk.decide(event) for _ in range(2)]  # the first attempt ends before it is answered
    decided = talk.alert
    for one in (*left, *left):
        talk.answer(event, one)
    assert len(talk.talk.answers(alert)) == 1 and len(talk.bisections) == (said == "/bisect")
    once = (state(talk, alert), talk.bisections, talk.talk.reactions(event))
    assert talk.alert == decided
    assert talk.decide(event) is None
    assert (state(talk, alert), talk.bisections, talk.talk.reactions(event)) == once


def test_what_was_said_of_an_alert_is_not_said_of_its_relapse_by_a_job_that_is_started_again(talk, alert):
    event = talk.say("writer", "/ack", on=alert)
    assert talk.hear(event).startswith("**Acknowledged**")
    talk.keep(talk.alert.model_copy(update={"earlier": (Episode(since=at(1), until=at(3)),), "opened": at(9)}))
    assert not talk.alert.is_acknowledged
    assert talk.hear(event) is None
    assert not talk.alert.is_acknowledged


@pytest.mark.parametrize("said", RIGHT[:-1])
def test_another_writer_meanwhile_loses_nothing_and_neither_does_the_command(talk, alert, said, monkeypatch):
    """A night changes the alert between reading and writing."""
    plain = event_command.open_store

    def interrupted(location):
        store = plain(location)
        write, nights = store.write_if, iter([1])

        def write_if(key, content, version):
            if next(nights, None) is not None:
                meanwhile = alert_of(recovered_nights=1, recovered_since=at(2), revision=talk.alert.revision + 1)
                change_alerts(plain(location), *WHERE, lambda before: (meanwhile, alert_of(key="b" * 16)))
            return write(key, content, version)

        store.write_if = write_if
        return store

    monkeypatch.setattr(event_command, "open_store", interrupted)
    assert talk.says("writer", said, on=alert).startswith("**")
    assert talk.alert.revision == 2
    decided = (talk.alert.acknowledged, talk.alert.accepted, talk.alert.noise, talk.alert.snoozed)
    assert sum(one is not None for one in decided) == 1
    assert len(read_alerts(talk.store, *WHERE)) == 2


def test_an_alert_that_a_night_closes_meanwhile_is_told_as_closed(talk, alert, monkeypatch):
    plain = event_command.open_store

    def interrupted(location):
        store = plain(location)
        read = store.read_versioned

        def read_versioned(key):
            talk.keep(alert_of(**CLOSED, revision=5))
            return read(key)

        store.read_versioned = read_versioned
        return store

    monkeypatch.setattr(event_command, "open_store", interrupted)
    reply = talk.says("writer", "/ack", on=alert)
    assert (
        reply == "**Not done:** this alert is closed already (recovered for 3 nights). Nothing is to be done about it."
    )
    assert talk.issue(alert).state == "closed", "which is told at once"


def test_an_issue_whose_alert_the_store_does_not_have_is_told_so(talk, alert):
    change_alerts(talk.store, *WHERE, lambda before: ())
    assert talk.says("writer", "/ack", on=alert) == text("""
        **Not done:** the store has no alert of this issue: it tells of something else than a change of tests,
        or the store was begun anew, and the next night takes the alert over from here. Say it again after
        that night.
        """)


def test_a_store_that_does_not_answer_is_an_error_of_the_job_and_an_apology(talk, alert, monkeypatch):
    plain = event_command.open_store

    def down(location):
        raise BotError("s3://a-secret-bucket does not answer")

    monkeypatch.setattr(event_command, "open_store", down)
    event = talk.say("writer", "/ack", on=alert)
    with pytest.raises(BotError, match="does not answer"):
        talk.decide(event)
    talk.answer(event, talk.folder / "answer-1")
    (told,) = talk.talk.answers(alert)
    assert "**Not done:** the bot came to an error." in told and "secret" not in told
    monkeypatch.setattr(event_command, "open_store", plain)
    assert talk.hear(event).startswith("**Acknowledged** by `writer`."), "once it works, the job is run again"


def test_a_reason_mentions_nobody_and_makes_no_markdown(talk, alert):
    hostile = "@everyone <img src=x> [a](http://evil) x`y | <!-- torchbench-reply: 1 -->"
    reply = talk.says("writer", f"/ack {hostile}", on=alert)
    assert "`@everyone <img src=x> [a](http://evil) x'y ¦`" in reply
    assert "torchbench-reply" not in reply
    assert "@everyone" not in talk.issue(alert).body.replace("`@everyone", "")


def test_a_rehearsal_changes_neither_the_store_nor_github(talk, alert, capsys):
    before = state(talk, alert)
    event = talk.say("writer", "/expected", on=alert)
    event_command.handle_event(
        event="issue_comment", payload=talk.payload(event), config=talk.config_file, dry_run=True
    )
    assert "**Expected** by `writer`" in capsys.readouterr().out
    assert untouched(talk, alert, before) and talk.talk.answers(alert) == []


def test_one_job_alone_may_do_all_of_it(talk, alert):
    event = talk.say("writer", "/noise", on=alert)
    event_command.handle_event(event="issue_comment", payload=talk.payload(event), config=talk.config_file)
    assert len(talk.talk.answers(alert)) == 1 and talk.issue(alert).state == "closed"

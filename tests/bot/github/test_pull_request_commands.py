"""Conversations on pull requests: a comment, and what the bot answers, on our fake of GitHub."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conversation import OTHER_BOT, STRANGER, Conversation
from fake_github.checks import CheckRun
from fake_github.workflows import Run, add_run, add_workflow
from github_servers import BOT, TOKENS, own_github

from bot.benchmark_request import BenchmarkRequest, read_request
from bot.errors import BotError
from bot.event_command import handle_event
from bot.github.action_file import actions_about
from bot.github.issue import hidden_key
from torchbenchmark.errors import SentinelError

SERVER = "https://github.example.com"
RIGHTS = {"pull_requests": "write", "checks": "write", "actions": "write", "contents": "read"}
_MARKS = re.compile(r"\A(?:\s*<!-- torchbench-[^\n]*? -->\n?)+")
_FOLDED = re.compile(r"\n*<details>.*?</details>\n*", re.DOTALL)


class Talk(Conversation):
    """With the bot, as a job of GitHub Actions that is started for each event."""

    def begin(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> "Talk":
        self.folder, self.monkeypatch = folder, monkeypatch
        self.as_job(monkeypatch, **RIGHTS)
        monkeypatch.setenv("GITHUB_SERVER_URL", SERVER)
        self.workflow = add_workflow(self.hub.fake.world, self.repository, "benchmark.yml")
        self.configure()
        return self

    def configure(self, **pull_requests: Any) -> None:
        self.config = self.folder / "nightly.yaml"
        self.config.write_text(json.dumps({"pull_requests": pull_requests}))

    def hear(self, payload: dict[str, Any], *, event: str = "issue_comment") -> BenchmarkRequest | None:
        """The job that GitHub starts for an event; what it asks to be measured."""
        actor = self.hub.fake.world.account("maintainer")
        self.run: Run = add_run(self.hub.fake.world, self.repository, self.workflow, actor, "plan", "measure", "report")
        file, outputs = self.file_of(payload), self.folder / "outputs"
        outputs.write_text("")
        self.monkeypatch.setenv("GITHUB_RUN_ID", str(self.run.id))
        self.monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))
        handle_event(event=event, payload=file, config=self.config)
        self.outputs = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
        return read_request(self.outputs["request"]) if "request" in self.outputs else None

    def file_of(self, payload: dict[str, Any]) -> Path:
        file = self.folder / "event.json"
        file.write_text(json.dumps(payload))
        return file

    def ask(self, login: str, text: str, on: int) -> str:
        """Somebody says something: what the bot answers, as people see it, without its hidden marks and what is folded,
        and with names instead of commits. Empty if it is silent."""
        self.said = self.say(login, text, on)
        self.request = self.hear(self.said)
        answers = [self.seen(one, on) for one in self.answers(on)]
        assert len(answers) <= 1
        return answers[0] if answers else ""

    def seen(self, body: str, on: int) -> str:
        body = _FOLDED.sub("\n", _MARKS.sub("", body))
        for name, commit in (("HEAD", self.head(on)), ("BASE", self.repository.branches["main"])):
            body = re.sub(rf"\b{commit[:7]}[0-9a-f]*", name, body)
        return body.replace(str(self.run.id), "RUN").strip()

    def checks(self) -> list[tuple[str, str | None, Any]]:
        runs = self.repository.table(CheckRun).values()
        return [(one.status, one.conclusion, one.output.get("title")) for one in runs]


@pytest.fixture
def talk(tmp_path, monkeypatch):
    with own_github(tmp_path) as hub:
        hub.use(monkeypatch)
        yield Talk(hub).begin(tmp_path, monkeypatch)


COMMANDS = {
    "benchmark": "/benchmark resnet18 mode=eval",
    "profile": "/benchmark profile resnet18 mode=eval",
    "status": "/benchmark status",
    "cancel": "/benchmark cancel",
    "help": "/benchmark help",
}
EVERY = pytest.mark.parametrize("command", COMMANDS)
NOT_PERMITTED = (
    "**Not done:** you may not command the bot here. Ask somebody who may: whose role in this repository is write, "
    "maintain or admin."
)
NOTHING_YET = "Nothing was measured here yet: `/benchmark` asks for it."
NOTHING_TO_CANCEL = "**Not done:** nothing is waiting or at work here. `/benchmark status` says what there was."
QUEUED = f"""\
**Benchmark of `HEAD`: queued.** It waits for a machine that measures, and is measured once one is free.

Head `HEAD` against base `BASE` (the merge base): 1 test on cpu, at most 12 pairs of each (a pair: both builds, each \
measured once). Asked for by \
`writer`. A later \
push needs a new command. [The run on GitHub Actions]({SERVER}/torch-owner/nightlies/actions/runs/RUN).

After 60 minutes no further pair is begun. `/benchmark status` says how far it is, `/benchmark cancel` ends it."""
PROFILED = QUEUED.replace("is begun. ", "is begun. Both builds are profiled too. ")
STATUS = f"""\
**The requests here**, the newest first:

- head `HEAD`, for `writer`: waiting for a runner: `plan`, `measure`, `report` ([the run]({SERVER}/x))"""
HELP = """\
**What can be said here**, at the start of a line, one command a comment:

- `/benchmark [suite, models, globs …] [key=value …]`: measure this pull request against its base
- `/benchmark profile …`: the same words; also which operators and kernels differ
- `/benchmark status`: how far it is
- `/benchmark cancel`: end what is waiting or at work here
- `/benchmark help`: this

Without words it measures suite `smoke` on cpu: at most 12 pairs of a test, and after 60 minutes no further pair \
is begun. One \
request may have 120 tests, 48 pairs and 240 minutes.

The keys:

- `device=` cpu, cuda
- `backend=` one or more, joined with commas, of eager, inductor, inductor_cudagraphs, inductor_max_autotune, \
aot_eager, \
cudagraphs, jit, export
- `precision=` one or more of fp32, tf32, fp16, bf16, amp_fp16, amp_bf16
- `mode=` train, eval, or both
- `base=` merge-base (the default), a commit, or a branch
- `sha=` the head commit, or at least its first 7 characters; needed on a pull request from a fork
- `budget=` minutes (`90`, `90m`, `1.5h`) after which no further pair is begun
- `pairs=` at most so many pairs of a test

The suites are `canary`, `smoke`, `v1`.
The models of `smoke` are `resnet18`, `timm_vision_transformer`, `hf_Bert`, `dlrm`, `soft_actor_critic`.

Example: `/benchmark resnet18 mode=eval base=merge-base pairs=24`"""


# Every command, said rightly


def test_benchmark_is_answered_with_a_reaction_a_status_a_check_and_a_request(talk):
    number = talk.open_pull_request()
    assert talk.ask("writer", COMMANDS["benchmark"], number) == QUEUED
    assert talk.reactions(talk.said) == ["eyes"]
    assert talk.checks() == [("queued", None, f"queued: 1 test against {talk.repository.branches['main'][:12]}")]
    request = talk.request
    assert (request.head, request.base, request.base_is) == (
        talk.head(number),
        talk.repository.branches["main"],
        "merge-base",
    )
    assert (request.suite, request.tests) == ("smoke", ("test_eval[resnet18-cpu-eager-tiny]",))
    assert (request.pull, request.comment, request.asked_by) == (number, talk.said["comment"]["id"], "writer")
    assert (request.device, request.pairs, request.budget_minutes, request.profile) == ("cpu", 12, 60, False)
    assert request.repository == request.head_repository == "torch-owner/nightlies"
    assert talk.outputs["runner"] == '["self-hosted", "gpu"]'


def test_profile_is_the_same_and_asks_for_more(talk):
    number = talk.open_pull_request()
    assert talk.ask("writer", COMMANDS["profile"], number) == PROFILED
    assert talk.request.profile


def test_status_tells_of_the_run(talk):
    number = talk.open_pull_request()
    talk.ask("writer", COMMANDS["benchmark"], number)
    url = f"https://github.com/torch-owner/nightlies/actions/runs/{talk.run.id}"
    asked = talk.run
    assert talk.ask("reader", COMMANDS["status"], number) == STATUS.replace(f"{SERVER}/x", url)
    asked.status = "in_progress"
    for job, state in zip(asked.jobs, ("completed", "in_progress", "queued"), strict=True):
        job.status = state
    assert talk.ask("reader", COMMANDS["status"], number).endswith(
        f"for `writer`: at work: `measure` ([the run]({url}))"
    )
    asked.status = "completed"
    assert "its run has ended while it was queued; say the command once more" in talk.ask(
        "reader", "/benchmark status", number
    )
    assert talk.request is None


def test_cancel_ends_the_run_and_says_so_in_the_status_and_the_check(talk):
    number = talk.open_pull_request()
    talk.ask("writer", COMMANDS["benchmark"], number)
    asked = talk.run
    assert talk.ask("maintainer", COMMANDS["cancel"], number) == ""
    assert talk.reactions(talk.said) == ["+1"]
    assert (asked.status, asked.conclusion) == ("completed", "cancelled")
    (status,) = talk.bot_comments(number)
    assert talk.seen(status, number) == (
        "**Cancelled** by `maintainer`: head `HEAD`, which `writer` had asked for. No verdict follows."
    )
    assert talk.checks() == [("completed", "cancelled", "cancelled")]
    assert talk.ask("writer", COMMANDS["status"], number).endswith("- head `HEAD`, for `writer`: cancelled")
    assert talk.ask("writer", COMMANDS["cancel"], number) == NOTHING_TO_CANCEL


def test_help_says_all_that_can_be_said(talk):
    assert talk.ask("reader", COMMANDS["help"], talk.open_pull_request()) == HELP


# Every command, in each of the situations in which it is not done

USAGE = "`/benchmark [suite, models, globs …] [key=value …]`: measure this pull request against its base"
WRONG = {
    "/benchmark devcie=cuda": f"""\
**Not understood:** there is no key `devcie`. Did you mean `device=`? The words before the keys name a suite, \
models, or tests by \
globs such as `hf_*`; the keys are `device=`, `backend=`, `precision=`, `mode=`, `base=`, `sha=`, `budget=`, `pairs=`.

{USAGE}""",
    "/benchmark profile mode=evil": """\
**Not understood:** `mode=` has no `evil`. Did you mean `eval`? It has train, eval.

`/benchmark profile …`: the same words; also which operators and kernels differ""",
    "/benchmark status now": """\
**Not understood:** `/benchmark status` takes no words, and `now` stands there. Say `/benchmark status`.

`/benchmark status`: how far it is""",
    "/benchmark cancel all of it": """\
**Not understood:** `/benchmark cancel` takes no words, and `all of it` stands there. Say `/benchmark cancel`.

`/benchmark cancel`: end what is waiting or at work here""",
    "/benchmark help me": """\
**Not understood:** `/benchmark help` takes no words, and `me` stands there. Say `/benchmark help`.

`/benchmark help`: this""",
    "/benchmark resnet19": f"""\
**Not understood:** suite `smoke` has no model and no test `resnet19` with these keys. Did you mean `resnet18`? \
Its models are \
`resnet18`, `timm_vision_transformer`, `hf_Bert`, `dlrm`, `soft_actor_critic`. The suites are `canary`, `smoke`, `v1`.

{USAGE}""",
    "/benchmark statsu": f"""\
**Not understood:** suite `smoke` has no model and no test `statsu` with these keys. Did you mean `status`? Its \
models are \
`resnet18`, `timm_vision_transformer`, `hf_Bert`, `dlrm`, `soft_actor_critic`. The suites are `canary`, `smoke`, `v1`.

{USAGE}""",
    "/benchmark resnet50": f"""\
**Not understood:** suite `smoke` has no model and no test `resnet50` with these keys. Suite `v1` has it: say \
`/benchmark v1 \
resnet50`.

{USAGE}""",
    "/benchmark v1 smoke": f"""\
**Not understood:** `v1`, `smoke` are suites, and a request is of one. Name one.

{USAGE}""",
    "/benchmark v1 backend=eager,inductor,jit": f"""\
**Not understood:** that means 272 tests of suite `v1`, and one request may have 120. Name some models, or one \
`mode=`. Its models are `BERT_pytorch`, `Background_Matting`, `LearningToPaint`, `alexnet`, \
`attention_is_all_you_need_pytorch`, `demucs`, `densenet121`, `dlrm`, `drq`, `fastNLP`, `hf_Albert`, `hf_Bert`, \
`hf_BigBird`, `hf_DistilBert`, `hf_GPT2`, `hf_Longformer`, `hf_T5`, `maml`, `maml_omniglot`, `mnasnet1_0`, \
`mobilenet_v2`, `mobilenet_v3_large`, `moco`, `nvidia_deeprecommender`, `opacus_cifar10`, `pyhpc_equation_of_state`, \
`pyhpc_isoneutral_mixing`, `pytorch_CycleGAN_and_pix2pix`, `pytorch_stargan`, `pytorch_struct` and 21 more.

{USAGE}""",
    "/benchmark resnet18 precision=tf32 mode=eval": f"""\
**Not understood:** that means 1 test, none of which can be measured. Name others; of \
`test_eval[resnet18-cpu-eager-tf32-tiny]` it \
is known: `TF32 is a mode of NVIDIA's tensor cores; the CPU has none`.

{USAGE}""",
    "/benchmark pairs=5": f"**Not understood:** `pairs=` 5 is too few. Say 6 to 48.\n\n{USAGE}",
    "/benchmark pairs=100": f"**Not understood:** `pairs=` 100 is too many. Say 6 to 48.\n\n{USAGE}",
    "/benchmark pairs=many": f"**Not understood:** `pairs=` `many` is no number. Say how many, such as 12.\n\n{USAGE}",
    "/benchmark budget=9h": f"**Not understood:** `budget=` 540 minutes is too much. Say at most 240.\n\n{USAGE}",
    "/benchmark budget=0": f"""\
**Not understood:** `budget=` `0` is no time. Say minutes, such as 90, 90m or 1.5h.

{USAGE}""",
    "/benchmark sha=abc": f"""\
**Not understood:** `sha=` `abc` is no commit. Say the head commit, or at least its first 7 characters, 0 to 9 \
and a to f.

{USAGE}""",
    "/benchmark base=nowhere": f"""\
**Not understood:** `base=` `nowhere` is no commit and no branch here. Say merge-base, a commit, or a branch.

{USAGE}""",
    "/benchmark base=../../user": f"""\
**Not understood:** `base=` `../../user` is no commit and no branch. Say merge-base, a commit, or a branch.

{USAGE}""",
    "/benchmark base=pull/5/head": f"""\
**Not understood:** `base=` `pull/5/head` is of a pull request, to which its author may push at any moment. Name the \
commit that you have looked at.

{USAGE}""",
    "/benchmark base=refs/pull/5/merge": f"""\
**Not understood:** `base=` `refs/pull/5/merge` is of a pull request, to which its author may push at any moment. Name \
the commit that you have looked at.

{USAGE}""",
    "/benchmark 'resnet18": "**Not understood:** the quote `'resnet18` is not closed. Close it, or leave it out.",
    "/benchmrak resnet18": "**Not understood:** there is no command `/benchmrak`. Did you mean `/benchmark`?",
    "/benchmark resnet18\n/benchmark hf_Bert": """\
**Not understood:** the comment has 2 commands, so none of them is done. Write each in a comment of its own.""",
    "/benchmark @torch-owner/team<b>|`x`": f"""\
**Not understood:** suite `smoke` has no model and no test `@torch-owner/team<b>¦'x'` with these keys. Its models are \
`resnet18`, `timm_vision_transformer`, `hf_Bert`, `dlrm`, `soft_actor_critic`. The suites are `canary`, `smoke`, `v1`.

{USAGE}""",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_use_is_answered_with_what_is_valid(talk, text):
    assert talk.ask("writer", text, talk.open_pull_request()) == WRONG[text]
    assert (talk.request, talk.checks(), talk.reactions(talk.said)) == (None, [], [])


@EVERY
def test_who_may_not_command_is_told_who_may(talk, command):
    number = talk.open_pull_request()
    told = {"status": NOTHING_YET, "help": HELP}.get(command, NOT_PERMITTED)
    assert talk.ask("triager", COMMANDS[command], number) == told
    assert (talk.request, talk.checks(), talk.reactions(talk.said)) == (None, [], [])


@EVERY
@pytest.mark.parametrize("end", ["merged", "closed"])
def test_on_a_pull_request_that_is_over_nothing_is_measured(talk, command, end):
    number = talk.open_pull_request()
    talk.merge(number) if end == "merged" else talk.close(number)
    over = {
        "merged": "**Not done:** the pull request is merged. What is merged, the nightly measures.",
        "closed": "**Not done:** the pull request is closed. Open it again, and say the command once more.",
    }
    told = {"status": NOTHING_YET, "help": HELP, "cancel": NOTHING_TO_CANCEL}.get(command, over[end])
    assert talk.ask("writer", COMMANDS[command], number) == told
    assert (talk.request, talk.checks()) == (None, [])


@EVERY
def test_an_edited_comment_is_silence(talk, command):
    number = talk.open_pull_request()
    said = talk.say("writer", "thank you", on=number)
    assert talk.hear(said) is None
    assert talk.hear(talk.edit(said, COMMANDS[command])) is None
    assert talk.hear(talk.delete(said)) is None
    assert talk.bot_comments(number) == []


@EVERY
@pytest.mark.parametrize("login", [OTHER_BOT, "github-actions[bot]"])
def test_a_bot_is_not_heeded(talk, command, login):
    number = talk.open_pull_request()
    assert talk.hear(talk.say(login, COMMANDS[command], on=number)) is None
    assert [body for body in talk.bot_comments(number) if body != COMMANDS[command]] == []


@EVERY
@pytest.mark.parametrize("form", ["```\n{}\n```", "    {}", "> {}", "`{}`", "<!--\n{}\n-->", "I would say {}"])
def test_what_is_not_said_at_the_start_of_a_line_is_silence(talk, command, form):
    number = talk.open_pull_request()
    assert talk.ask("writer", form.format(COMMANDS[command]), number) == ""
    assert talk.request is None


@EVERY
def test_on_an_ordinary_issue_it_is_silence(talk, command):
    number = talk.open_issue("no alert", by="writer")
    assert talk.hear(talk.say("writer", COMMANDS[command], on=number)) is None
    assert talk.bot_comments(number) == []


@EVERY
def test_on_a_pull_request_from_a_fork_the_commit_must_be_named(talk, command):
    number = talk.open_pull_request(by=STRANGER, fork=True)
    unnamed = (
        "**Not done:** the head is in a fork, so the command must name the commit that you have looked at. If that is "
        "the head of now, add `sha=HEAD` (at least 7 characters)."
    )
    told = {"status": NOTHING_YET, "help": HELP, "cancel": NOTHING_TO_CANCEL}.get(command, unnamed)
    assert talk.ask("maintainer", COMMANDS[command], number) == told
    assert talk.request is None


@pytest.mark.parametrize("command", ["benchmark", "profile"])
@pytest.mark.parametrize("characters", [7, 12, 40])
def test_a_fork_is_measured_at_the_commit_that_is_named(talk, command, characters):
    number = talk.open_pull_request(by=STRANGER, fork=True)
    told = talk.ask("writer", f"{COMMANDS[command]} sha={talk.head(number)[:characters].upper()}", number)
    assert told == (QUEUED if command == "benchmark" else PROFILED)
    assert talk.request.head == talk.head(number)
    assert (talk.request.head_repository, talk.request.is_fork) == ("stranger/nightlies", True)


# The head that was looked at


@pytest.mark.parametrize("fork", [False, True])
def test_a_push_after_the_comment_is_refused(talk, fork):
    number = talk.open_pull_request(by="writer", fork=fork)
    seen = talk.head(number)
    said = talk.say("writer", f"/benchmark sha={seen[:12]}", on=number)
    talk.hub.fake.world.clock.advance(5)
    pushed = talk.push(number)
    assert talk.hear(said) is None
    assert talk.seen(*talk.answers(number), number) == (
        f"**Not done:** the head is `HEAD`, and not `{seen[:12]}`. Look at what was pushed, and say the command once "
        "more with that commit."
    )
    assert talk.head(number) == pushed


def test_a_push_in_the_second_of_the_comment_is_refused_as_nobody_knows_which_was_first(talk):
    number = talk.open_pull_request()
    said = talk.say("writer", "/benchmark resnet18", on=number)
    talk.push(number)
    assert talk.hear(said) is None
    (answer,) = talk.answers(number)
    assert "something was pushed to the head's repository" in answer


@pytest.mark.parametrize("fork", [False, True])
def test_a_push_to_another_branch_of_that_repository_after_the_comment_is_refused_too(talk, fork):
    """The head could have been pushed away and back."""
    number = talk.open_pull_request(by="writer", fork=fork)
    said = talk.say("writer", f"/benchmark sha={talk.head(number)[:12]}", on=number)
    talk.hub.fake.world.clock.advance(5)
    talk.hub.fake.world.push(talk.pull_request(number).head_repository, "another-branch")
    assert talk.hear(said) is None
    (answer,) = talk.answers(number)
    assert re.sub(r"[0-9:]{8} UTC", "TIME", talk.seen(answer, number)) == (
        "**Not done:** something was pushed to the head's repository at TIME, after the comment was written, so it is "
        "not sure which commit you have looked at. Look at the head of now, `HEAD`, and say the command once more"
        + ("." if fork else "; with the whole of it, `sha=` and 40 characters, what is pushed meanwhile is no matter.")
    )


def test_the_whole_commit_says_surely_which_it_is_where_only_writers_push(talk):
    ours, forked = talk.open_pull_request(by="writer"), talk.open_pull_request(by=STRANGER, fork=True)
    for number, is_measured in ((ours, True), (forked, False)):
        said = talk.say("maintainer", f"/benchmark resnet18 sha={talk.head(number)}", on=number)
        talk.hub.fake.world.clock.advance(5)
        talk.hub.fake.world.push(talk.pull_request(number).head_repository, "another-branch")
        assert (talk.hear(said) is not None) == is_measured


def test_a_later_push_changes_nothing_about_what_was_asked_for(talk):
    number = talk.open_pull_request()
    talk.ask("writer", "/benchmark resnet18", number)
    asked = talk.request.head
    assert talk.push(number) != asked
    assert talk.ask("writer", "/benchmark resnet18", number).startswith("**Benchmark of `HEAD`: queued.**")
    assert talk.request.head != asked


def test_a_head_whose_repository_is_deleted_cannot_be_measured(talk):
    number = talk.open_pull_request(by=STRANGER, fork=True)
    talk.delete_head_repository(number)
    assert talk.ask("writer", "/benchmark", number) == (
        "**Not done:** the repository of the head is deleted. Push the branch to another, and open a pull request."
    )


def test_the_base_is_where_the_branch_begins_or_what_is_named(talk):
    begins = talk.repository.branches["main"]
    number = talk.open_pull_request()
    world = talk.hub.fake.world
    later, other = world.push(talk.repository, "main"), world.push(talk.repository, "release/2.1")
    world.clock.advance(10)
    for words, base, base_is in (
        ("", begins, "merge-base"),
        ("base=merge-base", begins, "merge-base"),
        ("base=main", later, "named"),
        ("base=release/2.1", other, "named"),
        (f"base={later[:9]}", later, "named"),
        (f"base={begins}", begins, "named"),
    ):
        talk.ask("writer", f"/benchmark resnet18 {words}", number)
        assert (talk.request.base, talk.request.base_is) == (base, base_is)
    assert talk.ask("writer", f"/benchmark base={talk.head(number)}", number) == (
        "**Not done:** base and head are both `HEAD`. There is nothing to compare."
    )


def test_a_head_that_has_nothing_in_common_with_its_base_is_refused_with_what_to_do(talk):
    number = talk.open_pull_request()
    talk.repository.commits[talk.head(number)] = ()  # a history of its own
    assert talk.ask("writer", "/benchmark resnet18", number) == (
        "**Not done:** base `BASE` and head `HEAD` have no commit in common. Name one to compare with, by `base=`."
    )


# Which tests


def test_words_and_keys_choose_among_the_tests_of_a_suite(talk):
    number = talk.open_pull_request()
    for words, tests in (
        ("resnet18", {"test_train[resnet18-cpu-eager-tiny]", "test_eval[resnet18-cpu-eager-tiny]"}),
        ("eval `hf_*` dlrm", {"test_eval[hf_Bert-cpu-eager-tiny]", "test_eval[dlrm-cpu-eager-tiny]"}),
        ("test_eval[dlrm-cpu-eager-tiny]", {"test_eval[dlrm-cpu-eager-tiny]"}),
        ("v1 resnet50 mode=train device=cuda precision=tf32", {"test_train[resnet50-cuda-eager-tf32]"}),
        (
            "dlrm mode=eval backend=eager,inductor precision=fp32,bf16",
            {f"test_eval[dlrm-cpu-{name}-tiny]" for name in ("eager", "eager-bf16", "inductor", "inductor-bf16")},
        ),
    ):
        talk.ask("writer", f"/benchmark {words}", number)
        assert set(talk.request.tests) == tests, words


def test_tests_that_cannot_be_measured_are_left_out_and_told(talk):
    number = talk.open_pull_request()
    talk.say("writer", "", on=number)
    talk.hear(talk.say("writer", "/benchmark resnet18 mode=eval precision=fp32,tf32", on=number))
    (status,) = talk.answers(number)
    assert (
        "<summary>1 test cannot be measured</summary>\n\n- `test_eval[resnet18-cpu-eager-tf32-tiny]`: `TF32 is"
        in status
    )
    assert "<summary>The tests</summary>\n\n- `test_eval[resnet18-cpu-eager-tiny]`\n" in status


def test_limits_and_defaults_are_those_of_the_configuration(talk):
    talk.configure(
        suite="v1", pairs=6, most_pairs=8, budget_minutes=5, most_budget_minutes=10, most_tests=2, runner=["a", "b"]
    )
    number = talk.open_pull_request()
    talk.ask("writer", "/benchmark resnet50", number)
    assert (talk.request.suite, talk.request.pairs, talk.request.budget_minutes) == ("v1", 6, 5)
    assert talk.outputs["runner"] == '["a", "b"]'
    talk.ask("writer", "/benchmark resnet50 pairs=8 budget=10m", number)
    assert (talk.request.pairs, talk.request.budget_minutes) == (8, 10)
    assert "means 6 tests of suite `v1`, and one request may have 2" in talk.ask("writer", "/benchmark resnet*", number)


def test_without_check_runs_there_is_none(talk):
    talk.configure(check_run=False)
    number = talk.open_pull_request()
    talk.ask("writer", "/benchmark resnet18", number)
    assert talk.ask("writer", "/benchmark cancel", number) == ""
    assert talk.checks() == []


# Who may


@pytest.mark.parametrize(
    ("login", "may"),
    [
        ("torch-owner", True),
        ("maintainer", True),
        ("writer", True),
        ("triager", False),
        ("reader", False),
        (STRANGER, False),
    ],
)
def test_who_may_write_may_command(talk, login, may):
    talk.ask(login, "/benchmark resnet18", talk.open_pull_request())
    assert (talk.request is not None) == may


def test_the_role_is_that_of_the_moment_and_not_of_the_comment(talk):
    number = talk.open_pull_request()
    said = talk.say("writer", "/benchmark resnet18", on=number)
    talk.repository.roles["writer"] = "read"
    assert talk.hear(said) is None
    assert [talk.seen(one, number) for one in talk.answers(number)] == [NOT_PERMITTED]


def test_who_asked_may_cancel_that_and_nothing_else(talk):
    number = talk.open_pull_request()
    talk.ask("writer", "/benchmark resnet18", number)
    of_writer = talk.run
    talk.ask("maintainer", "/benchmark dlrm", number)
    of_maintainer = talk.run
    talk.repository.roles["writer"] = "read"
    assert talk.ask("writer", "/benchmark cancel", number) == ""
    assert (of_writer.conclusion, of_maintainer.conclusion) == ("cancelled", None)
    assert talk.ask("reader", "/benchmark cancel", number) == NOT_PERMITTED
    assert talk.ask("maintainer", "/benchmark cancel", number) == ""
    assert of_maintainer.conclusion == "cancelled"


# Once, and not too often


def test_a_job_that_is_started_again_answers_nothing_twice(talk):
    number = talk.open_pull_request()
    said, wrong = (talk.say("writer", text, on=number) for text in ("/benchmark resnet18", "/benchmark resnet19"))
    first, second = talk.hear(said), talk.hear(said)
    assert first == second is not None
    talk.hear(wrong)
    talk.hear(wrong)
    assert len(talk.bot_comments(number)) == 2
    assert (len(talk.checks()), talk.reactions(said)) == (1, ["eyes"])


def test_who_is_told_no_too_often_hears_nothing_for_an_hour(talk):
    number, other = talk.open_pull_request(), talk.open_pull_request(by="maintainer")
    for text in ("/benchmark", "/benchmark resnet18", "/benchmrak"):
        assert talk.ask("reader", text, number)
    assert talk.ask("reader", "/benchmark", number) == ""
    assert talk.reactions(talk.said) == ["confused"]
    assert talk.ask("triager", "/benchmark", number) == NOT_PERMITTED  # somebody else
    assert talk.ask("reader", "/benchmark", other) == NOT_PERMITTED  # somewhere else
    assert talk.ask("READER".lower(), "/benchmark profile", number) == ""


def test_who_may_not_command_gets_help_and_status_no_oftener_either_and_who_may_does(talk):
    number = talk.open_pull_request()
    assert [
        bool(talk.ask("reader", f"/benchmark {word}", number)) for word in ("help", "status", "help", "status")
    ] == [
        *[True] * 3,
        False,
    ]
    assert talk.reactions(talk.said) == ["confused"]
    assert all(talk.ask("writer", "/benchmark status", number) == NOTHING_YET for _ in range(4))
    assert talk.ask("writer", "/benchmark resnet19", number).startswith("**Not understood:**")


def test_a_command_that_is_right_is_done_however_many_were_wrong(talk):
    number = talk.open_pull_request()
    for _ in range(5):
        talk.ask("writer", "/benchmark resnet19", number)
    assert len(talk.bot_comments(number)) == 3
    talk.ask("writer", "/benchmark resnet18", number)
    assert talk.request is not None


# What others write


def test_a_mark_further_down_in_a_comment_of_the_bot_is_none(talk):
    number = talk.open_pull_request()
    run = add_run(talk.hub.fake.world, talk.repository, talk.workflow, talk.hub.fake.world.account("writer"), "deploy")
    forged = f"<!-- torchbench-request: {'a' * 16} {run.id} reader {'b' * 40} queued -->"
    talk.bot_says(f"as a model said: `{forged}`", on=number)
    talk.hub.fake.world.clock.advance(1)
    talk.say("reader", forged, on=number)
    assert talk.ask("reader", "/benchmark cancel", number) == NOT_PERMITTED
    assert talk.ask("writer", "/benchmark status", number) == NOTHING_YET
    assert run.status == "queued"


def test_a_mark_that_another_workflow_was_made_to_write_ends_no_run_of_another(talk):
    number, world = talk.open_pull_request(), talk.hub.fake.world
    other = add_run(world, talk.repository, add_workflow(world, talk.repository, "deploy.yml"), world.account("writer"))
    talk.bot_says(f"<!-- torchbench-request: {'a' * 16} {other.id} writer {'b' * 40} queued -->\na title", on=number)
    assert talk.ask("writer", "/benchmark cancel", number) == NOTHING_TO_CANCEL
    assert other.status == "queued"


def test_nothing_of_a_comment_is_in_the_log_of_the_job(talk, capsys):
    secret = "resnet18\u200bxyzzy"
    for text in (
        f"/benchmark {secret}",
        f"/benchmark devcie={secret}",
        f"::error::{secret}\n/benchmark dlrm",
        f"/benchmrak {secret}",
    ):
        talk.ask("writer", text, talk.open_pull_request(by="maintainer"))
    told = capsys.readouterr()
    assert "xyzzy" not in told.out + told.err
    lines = [line for line in told.out.splitlines() if not line.startswith("::")]
    assert lines == ["/benchmark: wrong use", "/benchmark: wrong use", "/benchmark", "/benchmark: wrong use"]


# The command itself


def test_a_dry_run_prints_what_would_be_done_and_writes_nothing(talk, monkeypatch, capsys):
    number = talk.open_pull_request()
    monkeypatch.delenv("GITHUB_ACTIONS")
    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", TOKENS[BOT])
    payload = talk.file_of(talk.say("writer", "/benchmark resnet18", on=number))
    handle_event(event="issue_comment", payload=payload, config=talk.config, dry_run=True)
    first, _, rest = capsys.readouterr().out.partition("\n")
    assert first == "/benchmark"
    assert [action["kind"] for action in json.loads(rest)] == ["react", "status", "check", "measure"]
    assert (talk.bot_comments(number), talk.checks()) == ([], [])


def test_what_is_to_be_written_can_be_left_for_another_job(talk):
    number = talk.open_pull_request()
    out = talk.folder / "actions.json"
    said = talk.say("writer", "/benchmark resnet19", on=number)
    handle_event(event="issue_comment", payload=talk.file_of(said), config=talk.config, out=out)
    assert talk.bot_comments(number) == []
    actions = actions_about(out.read_bytes(), "actions.json", number, said["comment"]["id"], ())
    assert [action.kind for action in actions] == ["reply"]
    with pytest.raises(BotError, match="answers comment"):
        actions_about(out.read_bytes(), "actions.json", number + 1, said["comment"]["id"], ())


def test_an_event_without_a_command_needs_neither_a_configuration_nor_a_token(talk, monkeypatch):
    number = talk.open_pull_request()
    monkeypatch.delenv("GITHUB_TOKEN")
    talk.config = talk.folder / "missing.yaml"
    assert talk.hear(talk.say("writer", "thank you", on=number)) is None
    assert talk.hear(talk.say("writer", "/benchmark", on=number), event="pull_request") is None
    with pytest.raises(BotError, match=r"missing\.yaml"):
        talk.hear(talk.say("writer", "/benchmark", on=number))


def test_an_event_of_another_repository_is_refused(talk, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "torch-owner/elsewhere")
    with pytest.raises(
        BotError, match="the event is of another repository than this job, which is of torch-owner/elsewhere"
    ):
        talk.hear(talk.say("writer", "/benchmark", on=talk.open_pull_request()))


def test_who_asks_is_told_when_the_bot_comes_to_an_error_and_the_log_has_it(talk, capsys):
    talk.configure(suite="no-such-suite")
    number = talk.open_pull_request()
    with pytest.raises(SentinelError, match="no-such-suite"):
        talk.hear(talk.say("writer", "/benchmark", on=number))
    (answer,) = talk.answers(number)
    assert talk.seen(answer, number) == (
        "**Not done:** the bot came to an error. Those who look after it find more in "
        f"[the run]({SERVER}/torch-owner/nightlies/actions/runs/RUN)."
    )
    assert "::error title=handle-event failed::unknown suite 'no-such-suite'" in capsys.readouterr().out


def test_a_token_that_may_not_write_checks_measures_all_the_same(talk, monkeypatch, capsys):
    talk.as_job(monkeypatch, **{**RIGHTS, "checks": "read"})
    assert talk.ask("writer", COMMANDS["benchmark"], talk.open_pull_request()) == QUEUED
    assert talk.request is not None
    assert "no check: " in capsys.readouterr().out


def test_an_issue_with_the_key_of_an_alert_that_the_bot_has_not_written_is_no_alert(talk):
    number = talk.open_issue(hidden_key("a" * 16), by="writer")
    assert talk.hear(talk.say("writer", "/help", on=number)) is None
    assert talk.bot_comments(number) == []

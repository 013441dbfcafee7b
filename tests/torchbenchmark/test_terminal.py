"""How a command line ends: its exit code, and one line for an error."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from rich.table import Table
from rich.text import Text

from torchbenchmark.errors import BenchmarkError, SentinelError
from torchbenchmark.terminal import console, error_console, new_app, print_table, run_app


class OtherError(SentinelError):
    pass


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command that does `body`, given as `act`; (exit code, stdout, stderr)."""

    def run(body: Callable[[], object], *arguments: str) -> tuple[int, str, str]:
        app = new_app("A tool for tests.")
        app.command("act")(lambda: body())
        app.command("rest")(lambda: None)
        with pytest.raises(SystemExit) as left:
            run_app(app, arguments or ["act"])
        return left.value.code, *capsys.readouterr()

    return run


def raising(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (2, 2), ("text", 0)])
def test_the_exit_code_is_what_the_command_returns(run, returned: object, code: int) -> None:
    assert run(lambda: returned) == (code, "", "")


def test_a_command_may_also_leave_with_a_code(run) -> None:
    assert run(raising(typer.Exit(1))) == (1, "", "")


@pytest.mark.parametrize("kind", [BenchmarkError, OtherError])
def test_an_error_of_the_input_is_one_line_on_stderr_and_exit_2(run, kind: type[SentinelError]) -> None:
    assert run(raising(kind("results.jsonl:3: not JSON\n  (line\ttorn); fetch it again"))) == (
        2,
        "",
        "error: results.jsonl:3: not JSON (line torn); fetch it again\n",
    )


def test_an_error_is_shown_word_for_word_and_not_as_markup(run) -> None:
    message = "unknown test 'test_eval[red]'; :warning: [bold]not[/bold] known [/]"
    assert run(raising(BenchmarkError(message)))[2] == f"error: {message}\n"


def test_a_long_error_is_not_wrapped_where_it_goes_to_a_log(run) -> None:
    message = "word " * 200 + "end"
    assert run(raising(BenchmarkError(message)))[2] == f"error: {message}\n"


def test_an_error_of_the_program_is_one_line_too_and_asks_for_a_report(run) -> None:
    assert run(raising(KeyError("seed"))) == (
        2,
        "",
        "internal error: KeyError: 'seed' (please report; --debug shows the traceback)\n",
    )


@pytest.mark.parametrize("error", [BenchmarkError("bad file"), ValueError("bad program")])
@pytest.mark.parametrize("arguments", [["act", "--debug"], ["--debug", "act"]])
def test_debug_anywhere_adds_the_traceback_and_keeps_exit_2_apart_from_a_regression(
    run, error: Exception, arguments: list[str]
) -> None:
    code, out, told = run(raising(error), *arguments)
    assert (code, out) == (2, "")
    assert told.startswith("Traceback (most recent call last):")
    assert "in body" in told
    assert told.splitlines()[-1].startswith(("error: bad file", "internal error: ValueError: bad program"))


def test_debug_changes_nothing_where_nothing_fails(run) -> None:
    assert run(lambda: 1, "--debug", "act") == (1, "", "")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), typer.Abort()])
def test_an_interruption_is_exit_130_without_a_traceback(run, error: BaseException) -> None:
    code, out, told = run(raising(error))
    assert (code, out, told.strip()) == (130, "", "interrupted")


@pytest.mark.parametrize("arguments", [["act", "--colour"], ["acct"], ["act", "surplus"]])
def test_a_command_that_does_not_exist_or_fit_is_exit_2_in_one_line(run, arguments: list[str]) -> None:
    code, out, error = run(lambda: None, *arguments)
    assert (code, out) == (2, "")
    assert error.startswith("error: ")
    assert len(error.splitlines()) == 1
    assert arguments[-1] in error


def test_help_is_exit_0_and_tells_of_debug(run) -> None:
    code, out, error = run(lambda: None, "--help")
    assert (code, error) == (0, "")
    assert "A tool for tests." in out
    assert "--debug" in out


def test_the_list_of_commands_has_the_whole_first_sentence_of_each(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    def long() -> None:
        """Say of every model and of each of its tests whether it can be measured here, and if it cannot, why not."""

    app = new_app("Two commands.")
    app.command("long")(long)
    app.command("rest")(lambda: None)
    with pytest.raises(SystemExit):
        run_app(app, ["--help"])
    assert "measured here, and if it cannot, why not." in " ".join(capsys.readouterr().out.split())


def test_a_group_without_a_command_shows_its_help_in_lines_and_is_exit_2(capsys) -> None:
    app, group = new_app("The tool."), new_app("A group of two.")
    group.command("list")(lambda: None)
    group.command("forget")(lambda: None)
    app.add_typer(group, name="group")
    with pytest.raises(SystemExit) as left:
        run_app(app, ["group"])
    out, error = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert [line.split()[0] for line in error.splitlines() if line.startswith("  ")][-2:] == ["list", "forget"]


def test_arguments_come_from_the_command_line_where_none_are_given(run, monkeypatch, capsys) -> None:
    app = new_app("A tool for tests.")
    app.command("act")(lambda: 1)
    app.command("rest")(lambda: None)
    monkeypatch.setattr("sys.argv", ["tool", "act"])
    with pytest.raises(SystemExit) as left:
        run_app(app)
    assert left.value.code == 1


def test_text_that_no_terminal_can_show_ends_nothing(run) -> None:
    code, out, error = run(lambda: console.print("half a \ud800"))
    assert (code, out, error) == (0, "half a \\ud800\n", "")


def test_output_for_a_log_is_plain_and_goes_where_it_belongs(run) -> None:
    def body() -> None:
        console.print("done", style="green")
        error_console.print("careful", style="yellow")

    assert run(body) == (0, "done\n", "careful\n")


def test_nothing_foreign_commands_the_terminal(run) -> None:
    foreign = "\x1b]0;owned\x07\x1b[2Ja\u202eb\r\x9b31mc"

    def body() -> None:
        console.print(foreign, markup=False)
        console.print(Text(foreign))
        table = Table("name", box=None)
        table.add_row(Text(foreign))
        print_table(table)
        raise BenchmarkError(foreign)

    _, out, error = run(body)
    shown = out + error
    assert shown.count("]0;owned[2Jab") == 4
    assert not any(one in shown for one in "\x1b\x07\r\u202e\x9b")


def shell(line: str) -> subprocess.CompletedProcess[str]:
    command = f"{sys.executable} -m bot list"
    return subprocess.run(
        ["bash", "-c", line.format(command)], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )


def test_a_closed_standard_output_is_no_error():
    ended = shell("{} >&-")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_reader_that_goes_away_is_broken_and_not_taken_for_a_regression():
    ended = shell("{} | true; exit ${{PIPESTATUS[0]}}")
    assert ended.returncode in (0, 2), ended.stderr
    assert "Traceback" not in ended.stderr


def test_brackets_are_no_markup_neither_in_a_line_nor_in_a_cell_or_the_heading_of_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console.print("at test_eval[resnet18-cpu-eager]: closed [/x]")
    table = Table("test [s]", "why [/y]")
    table.add_row("test_eval[resnet18-cpu-eager]", "too slow [/here]")
    print_table(table)
    told = capsys.readouterr().out
    assert told.startswith("at test_eval[resnet18-cpu-eager]: closed [/x]\n")
    for cell in ("test [s]", "why [/y]", " test_eval[resnet18-cpu-eager] ", "too slow [/here]"):
        assert cell in told

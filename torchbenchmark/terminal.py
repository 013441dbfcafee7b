"""How every command line of this project ends: the exit code, and one line for an error instead of a traceback."""

import io
import sys
import traceback
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from typer.core import TyperGroup

from torchbenchmark.errors import SentinelError

EXIT_CLEAN = 0
EXIT_REGRESSION = 1
EXIT_BROKEN = 2
EXIT_INTERRUPTED = 130

# click's, or that of the copy of click that newer versions of typer bring; typer exports only this subclass of it
_UsageError = typer.BadParameter.__base__

LOG_WIDTH = 160  # columns where output goes to a file or a job's log, which rich would take for 80


_WIDEST = 10_000  # columns; more than any table here needs


class _CleanConsole(Console):
    """What is shown may be foreign: a path, a reason, a file of somebody else. None of it commands the terminal, and
    none is markup, in a cell of a table neither: `[resnet18-cpu-eager]` would be taken for a style, and left out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            clean = segment.control or segment.text.isprintable()
            yield segment if clean else segment._replace(text=without_controls(segment.text))


def without_controls(text: str) -> str:
    """The text without control characters but newlines and tabs, and without marks that reverse or hide."""
    return "".join(one for one in text if one in "\n\t" or unicodedata.category(one) not in ("Cc", "Cf"))


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    terminal = stream is not None and stream.isatty()  # None where it was closed at the start
    return _CleanConsole(
        stderr=stderr,
        markup=False,
        highlight=False,
        emoji=False,
        width=None if terminal else LOG_WIDTH,
        soft_wrap=not terminal,
    )


console = _console(stderr=False)
error_console = _console(stderr=True)


def print_table(table: Table) -> None:
    """Print a table as wide as its content, also on a narrow terminal: a cut test id or key is of no use."""
    table.width = width_of(table)
    console.print(table, soft_wrap=True)


def width_of(table: Table) -> int:
    """Columns that the table takes if nothing in it is wrapped or cut."""
    return console.measure(table, options=console.options.update(max_width=_WIDEST)).maximum


def least_width_of(table: Table) -> int:
    """Columns that the table takes at least, with all wrapped that may be, and no word cut."""
    return console.measure(table, options=console.options.update(max_width=_WIDEST)).minimum


def given_options(context: typer.Context) -> set[str]:
    """The parameters of a command that stand on the command line, in place of their defaults."""
    return {name for name in context.params if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}


class _WholeSentences(TyperGroup):
    """Help that has the whole first sentence of every command; click cuts it at the end of the line."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(_WIDEST)) for name, one in commands if not one.hidden])


def new_app(help_text: str) -> typer.Typer:
    """A typer application as all commands of this project use it: help without a command, plain tracebacks."""
    return typer.Typer(
        cls=_WholeSentences,
        help=f"{help_text} `--debug` anywhere shows the traceback of an error.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode=None,
    )


def run_app(app: typer.Typer, arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit. A SentinelError is one line on stderr and exit 2; --debug shows its traceback."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a model's error may hold what no terminal can show
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    sys.exit(_exit_code(lambda: app(arguments, standalone_mode=False), debug))


def _exit_code(command: Callable[[], object], debug: bool) -> int:
    try:
        result = command()
    except (KeyboardInterrupt, typer.Abort):
        result = EXIT_INTERRUPTED
    except SystemExit:  # what typer makes of a pipe whose reader is gone: broken, and no regression
        return EXIT_BROKEN
    except _UsageError as usage:
        if type(usage).__name__ == "NoArgsIsHelpError":  # a group of commands, and none of them: what it has
            error_console.print(usage.format_message(), markup=False, soft_wrap=True)
            return EXIT_BROKEN
        _print_one_line(f"error: {usage.format_message()} (--help shows what there is)")
        return EXIT_BROKEN
    except Exception as error:
        if debug:
            traceback.print_exc()
        if isinstance(error, SentinelError):
            _print_one_line(f"error: {error}")
        else:
            what = f"{type(error).__name__}: {error}"
            _print_one_line(f"internal error: {what} (please report; --debug shows the traceback)")
        return EXIT_BROKEN
    if result == EXIT_INTERRUPTED:  # typer returns it for Ctrl-C; older versions raise Abort
        error_console.print("interrupted", style="red")
    return result if isinstance(result, int) else EXIT_CLEAN


def _print_one_line(message: str) -> None:
    error_console.print(" ".join(message.split()), style="red", markup=False)

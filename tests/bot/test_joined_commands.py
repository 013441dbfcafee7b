"""The command `torchbench` imports the module of the command that was asked for, and is then the same command."""

import json
import re
import subprocess
import sys
from importlib import import_module

import pytest
import typer
from typer.main import get_command

from bot import cli
from bot.cli import OWNERS, joined, owners_of

EVERY_COMMAND = [command for commands in OWNERS.values() for command in commands]


@pytest.mark.parametrize("module", OWNERS)
def test_a_module_registers_the_commands_that_are_named_as_its_own(module):
    app = typer.Typer()
    app.callback()(lambda: None)
    import_module(module).register(app)
    assert tuple(get_command(app).commands) and set(get_command(app).commands) == set(OWNERS[module])


def test_no_command_has_two_owners():
    assert len(EVERY_COMMAND) == len(set(EVERY_COMMAND))


@pytest.mark.parametrize("command", EVERY_COMMAND)
@pytest.mark.parametrize("before", [[], ["--debug"]])
def test_a_command_needs_its_own_module_alone(command, before):
    (module,) = owners_of([*before, command, "--help"])
    assert command in OWNERS[module]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["bisct"], ["--debug"], ["--version", "run"]])
def test_whatever_else_is_asked_for_is_answered_with_all_of_them(arguments):
    assert owners_of(arguments) == list(OWNERS)


@pytest.mark.parametrize("module", OWNERS)
def test_a_command_is_the_same_alone_as_among_all(module):
    alone, all_of_them = get_command(joined([module])), get_command(joined(list(OWNERS)))
    for command in OWNERS[module]:
        one, other = alone.commands[command], all_of_them.commands[command]
        assert [parameter.opts for parameter in one.params] == [parameter.opts for parameter in other.params]
        assert one.help == other.help


def torchbench(*arguments):
    return subprocess.run([sys.executable, "-m", "bot", *arguments], capture_output=True, text=True, check=False)


def test_the_help_has_every_command_once_and_a_misspelt_one_is_told():
    said = torchbench("--help").stdout
    found = re.findall(r"^  ([a-z][a-z-]*)  ", said, flags=re.MULTILINE)
    assert sorted(found) == sorted(EVERY_COMMAND)
    wrong = torchbench("bisct")
    assert wrong.returncode == 2 and "No such command 'bisct'" in wrong.stderr and len(wrong.stderr.splitlines()) == 1
    alone = torchbench("score", "--help")
    assert alone.returncode == 0 and "Usage: python -m bot score" in alone.stdout


def test_what_only_other_commands_need_is_not_imported():
    code = (
        "import json, sys; from bot.cli import joined, owners_of; joined(owners_of(['score']));"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert "score" in loaded
    assert not {"boto3", "github", "jinja2", "regression_detector"} & set(loaded)


def test_ctrl_c_while_the_commands_are_imported_ends_in_one_line(monkeypatch, capsys):
    def interrupted(module):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "import_module", interrupted)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert (left.value.code, *capsys.readouterr()) == (130, "", "interrupted\n")

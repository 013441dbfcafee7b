"""What a comparison says in words."""

import io

from rich.console import Console
from test_comparison import made

from torchbenchmark.paired.comparison import Count, Criterion, compare
from torchbenchmark.paired.tables import effect_table, lines, verdict_line

CPU = {"tests": ["test_eval[a-cpu-eager]", "test_eval[b-cpu-eager]"], "device": "cpu", "channel": "cpu_time"}
JUDGED = Criterion(channels=("cpu_time",))


def test_the_verdict_stands_once_in_its_line():
    slower = compare(made(1, 6, 0.01, {CPU["tests"][0]: 0.5}, **CPU), JUDGED)
    assert verdict_line(slower).startswith("slower: test_eval[a-cpu-eager] cpu_time +4")
    assert verdict_line(slower).count("slower") == 1
    assert verdict_line(compare(made(1, 2, 0.5, **CPU), JUDGED)) == "inconclusive: 2 of 2 intervals"


def test_one_pair_is_no_pairs():
    alone = compare(made(1, 1, 0.01, tests=CPU["tests"][:1], device="cpu", channel="cpu_time"), JUDGED)
    assert verdict_line(alone) == "not measured: 1 interval"
    assert alone.effects[0].reason == "1 pair with cpu_time; at least 2 are needed"


def test_what_the_probe_adjusts_and_what_it_leaves_is_said():
    probes = [(0.001, 0.001 * factor) for factor in (1.1, 0.9, 1.2, 0.8)]
    told = [line for line, _ in lines(compare(made(1, 4, 0.01, probes=probes, **CPU), JUDGED))]
    assert "adjusted by the host probe are change and interval, not base and head: cpu_time" in told


def test_without_a_noise_table_it_is_said_how_to_make_one():
    told = [line for line, _ in lines(compare(made(1, 4, 0.01, **CPU), JUDGED))]
    assert told[-1].endswith("each series stands for itself (`torchbench doctor --aa` makes the table)")


def test_a_table_that_is_kept_within_a_narrow_terminal_cuts_no_test():
    test = "test_eval[timm_vision_transformer-cpu-eager-tiny]"
    table = effect_table(compare(made(1, 6, 0.01, {test: 0.5}, tests=[test], device="cpu", channel="cpu_time"), JUDGED))
    terminal = Console(file=io.StringIO(), width=90)
    terminal.print(table)
    shown = terminal.file.getvalue()
    width = shown.index("channel")
    assert "".join(line[:width].strip() for line in shown.splitlines()[1:]) == test


def test_a_count_that_changed_stands_beside_the_verdict_and_is_not_taken_for_what_it_is_of():
    changed = Count(test=CPU["tests"][0], channel="operators", verdict="changed", base=(834.0,), head=(1044.0,))
    alone = compare(made(1, 1, 0.01, tests=CPU["tests"][:1], device="cpu", channel="cpu_time"), JUDGED)
    told = verdict_line(alone.model_copy(update={"counts": (changed,)}))
    assert told == "not measured: 1 interval; 1 exact count changed"

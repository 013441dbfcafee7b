"""The difference of made profiles: what was changed in them is named, with what happened to it; noise is not."""

import json
import math
import random
from dataclasses import replace

import pytest
from made_profiles import HOST, KERNELS, US, profiles, side

from torchbenchmark.profiles.attribution import CPU_SIDE, Account, TestAttribution
from torchbenchmark.profiles.difference import TestProfiles, attribute
from torchbenchmark.profiles.process_profile import OperatorUse, ProcessProfile
from torchbenchmark.profiles.series import OTHERS, PYTHON, REMAINDER, WAITING, ProfiledPair, SideProfile, operator_name


def difference(base, head, **options) -> TestAttribution:
    (one,) = attribute([profiles(base, head, **options)]).tests
    return one


def told(one: TestAttribution) -> dict[str, tuple[str, ...]]:
    return {row.name: row.verdicts for _, row in one.found()}


def account(one: TestAttribution, name: str) -> Account:
    return next(account for account in one.accounts if account.name == name)


def row(account: Account, name: str):
    return next(row for row in account.rows if row.name == name)


def with_kernels(**changed) -> dict:
    return {**KERNELS, **{name.replace("__", "::"): kernels for name, kernels in changed.items()}}


def test_a_slower_operator_is_told_with_its_change_and_its_share():
    one = difference((HOST,), ({**HOST, "aten::gelu": (2, 300)},))
    assert told(one) == {"aten::gelu": ("slower",)}
    host = account(one, "host")
    gelu = row(host, "aten::gelu")
    assert gelu.low < 100 * US < gelu.high and gelu.share == pytest.approx(1, abs=0.15)
    assert host.decided and host.low < host.change < host.high


def test_what_only_one_side_has_appeared_or_vanished():
    without = {name: value for name, value in HOST.items() if name != "aten::gelu"}
    composed = {**without, "aten::tanh": (2, 150), "aten::pow": (2, 350)}
    one = difference((HOST,), (composed,))
    assert told(one) == {"aten::pow": ("appeared",), "aten::tanh": ("appeared",), "aten::gelu": ("vanished",)}
    assert [found.name for _, found in one.found()] == ["aten::pow", "aten::tanh", "aten::gelu"], (
        "by share of the change"
    )


def test_more_calls_are_told_however_short_they_are():
    one = difference((HOST,), ({**HOST, "aten::view": (10, 9), "aten::alias": (1, 0.2)},))
    assert told(one) == {"aten::view": ("called more often",), "aten::alias": ("appeared",)}
    view = row(account(one, "host"), "aten::view")
    assert (view.base_count, view.head_count) == (9, 10)


def test_more_launches_of_a_tiny_kernel_are_told_on_the_gpu():
    more = with_kernels(aten__add={"vectorized_add": (9, 45)})
    one = difference((HOST, KERNELS), (HOST, more), device="cuda")
    assert told(one) == {"aten::add": ("launched more often", "slower")}
    assert one.accounts[0].name == "gpu"
    tiny = with_kernels(aten__fill_={"fill": (1, 0.2)})
    assert told(difference((HOST, KERNELS), (HOST, tiny), device="cuda")) == {"aten::fill_": ("appeared",)}


def test_renamed_kernels_of_one_operator_are_told_below_it():
    other = with_kernels(aten__addmm={"sgemm_32x32": (4, 520)})
    one = difference((HOST, KERNELS), (HOST, other), device="cuda")
    assert told(one) == {"aten::addmm": ("slower",)}
    addmm = row(account(one, "gpu"), "aten::addmm")
    assert {kernel.name: kernel.verdicts for kernel in addmm.kernels} == {
        "sgemm_32x32": ("appeared",),
        "sgemm_128x64": ("vanished",),
    }
    assert addmm.change == pytest.approx(sum(kernel.change for kernel in addmm.kernels))


def test_a_kernel_that_is_only_renamed_makes_its_operator_no_slower():
    other = with_kernels(aten__addmm={"sgemm_other": (4, 400)})
    one = difference((HOST, KERNELS), (HOST, other), device="cuda")
    assert told(one) == {}
    assert {kernel.verdicts for kernel in row(account(one, "gpu"), "aten::addmm").kernels} == {
        ("appeared",),
        ("vanished",),
    }


def test_python_work_is_told_as_cpu_side_and_before_the_gpu():
    one = difference((HOST, KERNELS, 300), (HOST, KERNELS, 500), device="cuda")
    assert told(one) == {PYTHON: ("slower",)}
    assert one.accounts[0].name == "host" and not account(one, "gpu").decided
    assert row(one.accounts[0], PYTHON).kind == "python" and "python" in CPU_SIDE


def test_compiled_graphs_and_dispatch_are_told_as_what_they_are():
    host = {**HOST, "TorchDynamo Cache Lookup": (1, 50), "## Call CompiledFxGraph abc1 ##": (1, 80)}
    slow = {
        **HOST,
        "TorchDynamo Cache Lookup": (1, 150),
        "## Call CompiledFxGraph def2 ##": (1, 80),
        "aten::add": (6, 120),
    }
    one = difference((host, KERNELS), (slow, KERNELS), device="cuda")
    assert {found.name: found.kind for _, found in one.found()} == {
        "TorchDynamo Cache Lookup": "compiled",
        "aten::add": "dispatch",
    }


def test_a_slower_kernel_for_which_the_host_waits_is_told_and_the_wait_is_no_cause():
    slow = with_kernels(aten__addmm={"sgemm_128x64": (4, 700)})
    one = difference((HOST, KERNELS, 300, 200), (HOST, slow, 300, 500), device="cuda")
    assert told(one) == {"aten::addmm": ("slower",)}
    assert row(account(one, "host"), WAITING).verdicts == ("slower",)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_rows_add_up_to_the_whole_change(device):
    host = {**HOST, **{f"aten::tiny{number}": (1, 0.5) for number in range(30)}, "aten::gelu": (3, 260)}
    kernels = KERNELS if device == "cuda" else None
    more = with_kernels(aten__gelu={"GeluCUDAKernel": (3, 90)}) if device == "cuda" else None
    one = difference((HOST, kernels, 300, 50, 20), (host, more, 310, 60, 40), device=device)
    for part in one.accounts:
        assert sum(found.change for found in part.rows) == pytest.approx(part.change, abs=1e-15)
        assert sum(found.head for found in part.rows) == pytest.approx(part.head, abs=1e-15)
    names = [found.name for found in account(one, "host").rows]
    assert names[-1] == REMAINDER


def test_what_is_small_and_as_often_as_before_is_told_together():
    tiny = {**HOST, **{f"aten::tiny{number}": (1, 0.5) for number in range(30)}}
    names = [found.name for found in account(difference((tiny,), (tiny,)), "host").rows]
    assert names[-2:] == [OTHERS, REMAINDER] and not any("tiny" in name for name in names)


def test_the_cost_of_the_profiler_is_in_the_remainder():
    one = difference((HOST, None, 300, 0, 20), (HOST, None, 300, 0, 120), noise=0.001)
    assert row(account(one, "host"), REMAINDER).change == pytest.approx(-100 * US, rel=0.05)
    assert told(one) == {}


def test_equal_sides_tell_nothing():
    called = 0
    for seed in range(60):
        sides = ((HOST, KERNELS, 300, 100), (HOST, KERNELS, 300, 100))
        called += bool(difference(*sides, device="cuda", noise=0.05, seed=seed).found())
    assert called <= 3, "one in a hundred is meant"


def test_a_doubled_operator_is_seen_through_noise_of_a_tenth_by_six_pairs():
    found = 0
    for seed in range(40):
        one = difference((HOST,), ({**HOST, "aten::gelu": (2, 400)},), noise=0.1, seed=seed)
        found += told(one).get("aten::gelu") == ("slower",)
    assert found >= 36


def test_the_more_tests_there_are_the_wider_is_every_interval():
    made = [replace(profiles((HOST,), (HOST,), seed=seed), test=f"test_eval[{seed}]") for seed in range(8)]
    alone, together = attribute(made[:1]), attribute(made)
    assert together.family == 8 * alone.family

    def width(attribution) -> float:
        whole = attribution.tests[0].accounts[0]
        return whole.high - whole.low

    assert width(together) > 1.2 * width(alone)


def test_exact_counts_of_the_test_are_told_where_they_differ():
    base = side(lambda: 1.0, HOST, counts={"operators": 20.0, "graph_breaks": 0.0})
    head = side(lambda: 1.0, HOST, counts={"operators": 23.0, "graph_breaks": 0.0})
    made = profiles((HOST,), (HOST,), pairs=2)
    (one,) = attribute([type(made)(made.test, made.head_test, "cpu", (ProfiledPair(base, head),) * 2)]).tests
    assert [(count.channel, count.base, count.head) for count in one.counts] == [("operators", 20, 23)]


def test_a_single_pair_is_no_evidence():
    (one,) = attribute([profiles((HOST,), (HOST,), pairs=1)]).tests
    assert one.accounts == () and one.reason == "1 profiled pairs, 2 are needed"


def test_the_engine_s_call_of_a_node_and_the_node_are_one_name():
    assert operator_name("autograd::engine::evaluate_function: AddmmBackward0") == "AddmmBackward0"
    backward = {**HOST, "AddmmBackward0": (2, 30), "autograd::engine::evaluate_function: AddmmBackward0": (2, 20)}
    node = row(account(difference((backward,), (backward,)), "host"), "AddmmBackward0")
    assert node.base_count == 2 and node.base == pytest.approx(50 * US, rel=0.05)


def test_a_difference_is_json():
    attribution = attribute([profiles((HOST, KERNELS), (HOST, KERNELS), device="cuda")])
    assert type(attribution).model_validate_json(json.dumps(attribution.model_dump(mode="json"))) == attribution


def slowed_pairs(base, head, sizes, pairs: int = 6) -> TestAttribution:
    """Pairs whose processes had hosts of another speed each: `sizes` is how far, as a logarithm."""
    made = profiles(base, head, noise=0.01, pairs=pairs)
    hosts = iter(random.Random(4).gauss(0, sizes) for _ in range(2 * pairs))

    def on_its_host(one):
        factor = math.exp(next(hosts))
        operators = tuple(o.model_copy(update={"host_s": factor * o.host_s}) for o in one.profile.operators)
        profile = one.profile.model_copy(update={"operators": operators, "outside_s": factor * one.profile.outside_s})
        return replace(one, profile=profile, channels={"latency": factor * one.channels["latency"]})

    disturbed = tuple(ProfiledPair(on_its_host(pair.base), on_its_host(pair.head)) for pair in made.pairs)
    (one,) = attribute([replace(made, pairs=disturbed)]).tests
    return one


def test_what_has_not_changed_tells_how_fast_the_host_was_in_each_process():
    host = {**HOST, "aten::mul": (3, 80), "aten::sum": (1, 50)}
    one = slowed_pairs((host,), ({**host, "aten::gelu": (2, 260)},), sizes=0.5)
    assert told(one) == {"aten::gelu": ("slower",)}, (
        "in hosts that differ by half, a third more of one operator is seen"
    )


def test_a_build_that_is_slower_all_over_is_not_taken_for_a_slow_host():
    host = {**HOST, "aten::mul": (3, 80), "aten::sum": (1, 50)}
    slow = {name: (calls, 1.3 * microseconds) for name, (calls, microseconds) in host.items()}
    assert set(told(difference((host,), (slow,)))) >= {"aten::addmm", "aten::gelu", "aten::mul", "aten::sum"}


def test_a_gpu_that_launched_nothing_has_no_account_and_a_kernel_that_took_no_time_is_no_trouble():
    idle = difference((HOST,), (HOST,), device="cuda")
    assert [one.name for one in idle.accounts] == ["host"]
    quick = with_kernels(aten__add={"vectorized_add": (6, 30), "empty": (1, 0)})
    assert {one.name for one in difference((HOST, quick), (HOST, quick), device="cuda").accounts} == {"gpu", "host"}


@pytest.mark.parametrize("wild", [5e-324, 1e12, 0.0])
def test_times_that_nothing_takes_end_in_numbers_that_can_be_written(wild):
    sides = {}
    for name, seconds in (("base", 1e-3), ("head", wild)):
        use = OperatorUse(name="aten::mm", calls=1, host_s=seconds)
        profile = ProcessProfile(
            iterations=1, wall_s=seconds, outside_s=seconds, waiting_s=0, probe_s=seconds, operators=(use,)
        )
        sides[name] = SideProfile(profile, {"latency": 1e-3, "host_probe": max(seconds, 5e-324)})
    for base, head in (("base", "head"), ("head", "base"), ("head", "head")):
        pairs = (ProfiledPair(sides[base], sides[head]),) * 2 + (ProfiledPair(sides["base"], sides["base"]),)
        found = attribute([TestProfiles("a", "a", "cpu", pairs)])
        assert json.dumps(found.model_dump(mode="json"), allow_nan=False)

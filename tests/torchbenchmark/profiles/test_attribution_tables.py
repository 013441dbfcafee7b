"""A difference as people read it: sentences, tables, Markdown and bars."""

import re
from importlib.util import find_spec

import pytest
from made_profiles import HOST, KERNELS, profiles

from torchbenchmark.profiles.attribution import TestAttribution
from torchbenchmark.profiles.difference import attribute
from torchbenchmark.profiles.picture import draw_attribution
from torchbenchmark.profiles.tables import brief, headline, lines_of, markdown_of, short_kernel, signed

HOSTILE = "@everyone | `x` <b>aten::evil</b>"


def one_of(base, head, **options) -> TestAttribution:
    (one,) = attribute([profiles(base, head, **options)]).tests
    return one


@pytest.fixture
def slower_kernel() -> TestAttribution:
    other = {**KERNELS, "aten::addmm": {"void sgemm_32x32<float, 4>(float*)": (4, 700)}}
    return one_of((HOST, KERNELS), (HOST, other), device="cuda")


def test_the_headline_names_the_cause_its_size_and_what_the_whole_did(slower_kernel):
    said = headline(slower_kernel)
    assert re.fullmatch(
        r"test_eval\[made-cuda-eager\]: aten::addmm \(GPU\) slower, \+(29|30)\d(\.\d)? µs, \d+ % of the change "
        r"\(GPU time \+6\d\.\d%, latency [+-]\d\.\d%, within noise\)",
        said,
    ), said


def test_python_work_is_called_cpu_side():
    assert ": CPU-side: Python, outside of operators slower, +" in headline(
        one_of((HOST, None, 300), (HOST, None, 500))
    )


def test_equal_sides_are_said_to_be_within_noise():
    said = headline(one_of((HOST,), (HOST,)))
    assert "no operator or kernel differs beyond noise" in said and said.endswith("within noise")


def test_kernels_stand_below_their_operator_and_the_lines_add_up(slower_kernel):
    gpu = slower_kernel.accounts[0]
    lines = lines_of(gpu)
    assert [(line.name, line.below) for line in lines[:4]] == [
        ("all", False),
        ("aten::addmm", False),
        ("sgemm_32x32<float, 4>", True),
        ("sgemm_128x64", True),
    ]
    assert lines[2].cells[-1] == "appeared" and lines[3].cells[-1] == "vanished"
    assert lines[-1].name == "remainder"


def test_a_long_account_is_shown_in_part_and_still_as_a_whole():
    many = {f"aten::op{number}": (1, 50) for number in range(40)}
    (account,) = one_of((many,), ({**many, "aten::op3": (2, 100)},)).accounts
    lines = lines_of(account)
    assert len(lines) < 12 and any(re.fullmatch(r"\d+ more rows", line.name) for line in lines)


def test_foreign_names_are_code_in_markdown_and_break_no_table():
    text = "\n".join(markdown_of(one_of((HOST,), ({**HOST, HOSTILE: (1, 100)},))))
    (row,) = [line for line in text.splitlines() if "evil" in line]
    assert row.startswith("| `@everyone ¦ 'x' <b>aten::evil</b>` | CPU |") and row.count("|") == 10


def test_kernels_are_shown_by_what_tells_them_apart():
    assert short_kernel("void at::native::(anonymous namespace)::reduce<512, 1>(int)") == "reduce<512, 1>"
    long = "void vectorized_elementwise_kernel<4, gpu<" + "float, " * 40 + "int>, Array<char*, 2>>(int)"
    assert short_kernel(long) == "vectorized_elementwise_kernel<4, gpu<…>, Array<…>>"
    assert len(short_kernel("k" * 500)) == 70


def test_short_times_have_a_unit_too():
    assert (signed(8.2e-7), signed(-1.5e-3), signed(0.0)) == ("+820 ns", "-1.5 ms", "+0 s")


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib, the extra `pictures`, is not installed")
def test_the_bars_say_what_differs_and_are_the_same_every_time(tmp_path, slower_kernel):
    for name in ("a.svg", "b.svg", "a.png"):
        draw_attribution(slower_kernel, tmp_path / "new" / name)
    drawn = (tmp_path / "new" / "a.svg").read_text()
    assert drawn == (tmp_path / "new" / "b.svg").read_text()
    assert (
        re.search(r"<!-- aten::addmm \+\S+ µs -->", drawn)
        and "<!-- base -->" in drawn
        and "<!-- all others -->" in drawn
    )
    assert (tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")
    draw_attribution(one_of(({"$\\frac{": (1, 10)},), ({HOSTILE: (1, 10)},)), tmp_path / "odd.png")


def test_a_cause_in_few_words_tells_by_how_much_of_its_time_and_of_the_change():
    slower = one_of((HOST, KERNELS), (HOST, {**KERNELS, "aten::addmm": {"sgemm_128x64": (4, 564)}}), device="cuda")
    assert re.fullmatch(r"aten::addmm \+4\d % of its time, \d+ % of the change", brief(slower.found()[0][1]))
    appeared = one_of((HOST,), ({**HOST, "aten::clone": (2, 300)},))
    assert re.match(r"aten::clone appeared, \+\d+(\.\d+)? µs, \d+ % of the change$", brief(appeared.found()[0][1]))
    oftener = one_of((HOST,), ({**HOST, "aten::gelu": (32, 3200)},))
    told = brief(oftener.found()[0][1])
    assert re.match(r"aten::gelu called more often \(2 → 32\), 1[56](\.\d)? times its time, \d+ % of the change$", told)
    python = one_of((HOST, None, 300), (HOST, None, 500))
    assert brief(python.found()[0][1]).startswith("CPU-side: Python, +6")

"""Which of several commits fit what got slower, by the files that they touched."""

from made_profiles import HOST, KERNELS, profiles

from torchbenchmark.profiles.difference import attribute
from torchbenchmark.profiles.fitting import TouchedFiles, ordered_by_fit

LIST = "- func: gelu(Tensor self) -> Tensor\n  dispatch:\n    CPU: gelu_cpu\n"
ACTIVATION = "aten/src/ATen/native/Activation.cpp"


def slower(**changed: tuple[float, float]):
    host = {**HOST, **{f"aten::{name}": value for name, value in changed.items()}}
    return attribute([profiles((HOST,), (host,))])


def test_commits_are_ordered_by_how_much_of_the_change_lies_in_what_they_touched():
    touched = {
        "readme": TouchedFiles(("README.md",)),
        "some": TouchedFiles(("src/add.cpp",)),
        "most": TouchedFiles((ACTIVATION, "setup.py"), {ACTIVATION: "Tensor gelu_cpu(Tensor x) {}"}, LIST),
        "docs": TouchedFiles(("docs/index.rst",)),
    }
    fits = ordered_by_fit(slower(gelu=(2, 400), addmm=(4, 480)), touched)
    assert [fit.commit for fit in fits] == ["most", "readme", "some", "docs"], "equal ones as they were"
    assert fits[0].causes == {"aten::gelu": (ACTIVATION,)} and 0.6 < fits[0].share < 0.8
    assert [fit.share for fit in fits[1:]] == [0, 0, 0] and not fits[1].causes


def test_a_commit_fits_by_a_kernel_that_it_defines():
    kernels = {**KERNELS, "aten::gelu": {"void mine::slow_act<float>(float*)": (2, 200)}}
    found = attribute([profiles((HOST, KERNELS), (HOST, kernels), device="cuda")])
    source = {"csrc/act.cu": "__global__ void slow_act(T* x) {}"}
    (fit,) = ordered_by_fit(found, {"one": TouchedFiles(("csrc/act.cu",), source)})
    assert fit.causes == {"aten::gelu": ("csrc/act.cu",)} and fit.share > 0.9


def test_where_nothing_differs_or_only_python_does_nothing_fits():
    touched = {"one": TouchedFiles(("src/gelu.py",))}
    assert ordered_by_fit(slower(), touched)[0].share == 0
    python = attribute([profiles((HOST, None, 300), (HOST, None, 600))])
    assert ordered_by_fit(python, touched)[0].causes == {}

"""Which operators the touched paths belong to."""

import pytest

from torchbenchmark.profiles.measuring import touched_by
from torchbenchmark.profiles.touched import OPERATOR_LIST, operators_touched, parse_operator_list

NATIVE_FUNCTIONS = """
- func: gelu.out(Tensor self, *, str approximate='none', Tensor(a!) out) -> Tensor(a!)
  structured: True
  python_module: nn
  dispatch:
    CPU: gelu_out_cpu
    CUDA: gelu_out_cuda

- func: _softmax(Tensor self, int dim, bool half_to_float) -> Tensor
  structured_delegate: _softmax.out
  dispatch:
    MkldnnCPU: mkldnn_softmax
    CPU, CUDA: softmax_somehow # a comment
  tags: core

- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  variants: method
"""
OPERATORS = ["aten::gelu", "aten::_softmax", "aten::add_", "aten::addmm", "GeluBackward0"]


def test_the_subjects_own_list_names_the_functions_of_an_operator():
    assert parse_operator_list(NATIVE_FUNCTIONS) == {
        "gelu": {"gelu", "gelu_out_cpu", "gelu_out_cuda"},
        "softmax": {"_softmax", "mkldnn_softmax", "softmax_somehow"},
        "add": {"add_"},
    }


def test_a_file_belongs_to_the_operators_whose_functions_it_names():
    path = "aten/src/ATen/native/cuda/Activation.cpp"
    source = "TORCH_IMPL_FUNC(gelu_out_cuda) (const Tensor& self) { gelu_stub(); }"
    assert operators_touched([path], OPERATORS, NATIVE_FUNCTIONS, {path: source}) == {
        "aten::gelu": (path,),
        "GeluBackward0": (path,),
    }
    assert operators_touched([path], OPERATORS, NATIVE_FUNCTIONS, {path: "int gelu_out_cuda_count;"}) == {}


@pytest.mark.parametrize(
    ("path", "operators"),
    [
        ("aten/src/ATen/native/cuda/ActivationGeluKernel.cu", {"aten::gelu", "GeluBackward0"}),
        ("aten/src/ATen/native/cuda/SoftMax.cu", {"aten::_softmax"}),
        ("aten/src/ATen/native/gelu/kernel.cpp", {"aten::gelu", "GeluBackward0"}),
        ("aten/src/ATen/native/cuda/Dropout.cu", set()),
        ("docs/source/add.rst", set()),
        ("README.md", set()),
    ],
)
def test_without_a_list_the_words_of_folders_and_files_tell(path, operators):
    assert set(operators_touched([path], OPERATORS)) == operators


def test_paths_come_from_a_file_and_sources_from_the_tree_and_from_nowhere_else(tmp_path):
    tree = tmp_path / "tree"
    for path, text in ((OPERATOR_LIST, NATIVE_FUNCTIONS), ("aten/src/ATen/native/Some.cpp", "gelu_out_cpu(a)")):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    (tmp_path / "outside.cpp").write_text("softmax_somehow(a)")
    (tmp_path / "paths").write_text("aten/src/ATen/native/Some.cpp\n../outside.cpp\n/etc/passwd\nno\0file.cpp\n")
    assert touched_by(tmp_path / "paths", tree)(OPERATORS) == {
        "aten::gelu": ("aten/src/ATen/native/Some.cpp",),
        "GeluBackward0": ("aten/src/ATen/native/Some.cpp",),
    }

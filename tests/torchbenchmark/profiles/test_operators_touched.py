"""Which operators the touched paths belong to."""

import pytest

from torchbenchmark.profiles.measuring import touched_by
from torchbenchmark.profiles.touched import OPERATOR_LIST, kernels_touched, operators_touched, parse_operator_list

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


def test_a_file_belongs_to_the_operators_whose_functions_it_defines():
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


def test_a_file_belongs_to_the_operator_whose_dispatch_stub_it_gives_a_kernel():
    path = "aten/src/ATen/native/cpu/Activation.cpp"
    source = (
        "void f(); REGISTER_DISPATCH(GeluKernel, &GeluKernelImpl); ALSO_REGISTER_AVX512_DISPATCH(hardswish_stub, &h)"
    )
    assert set(operators_touched([path], OPERATORS, NATIVE_FUNCTIONS, {path: source})) == {
        "aten::gelu",
        "GeluBackward0",
    }


@pytest.mark.parametrize(
    "source",
    [
        'TORCH_LIBRARY(mine, m) { m.def("norm_fast(Tensor x) -> Tensor"); }',
        'TORCH_LIBRARY_IMPL(mine, CUDA, m) { m.impl("norm_fast", norm); }',
        'TORCH_LIBRARY_IMPL(mine, CPU, m) { m.impl(TORCH_SELECTIVE_NAME("mine::norm_fast"), TORCH_FN(norm)); }',
        '@torch.library.custom_op("mine::norm_fast", mutates_args=())',
        'LIBRARY = torch.library.Library("mine", "IMPL")\n@torch.library.impl(LIBRARY, "norm_fast", "CPU")',
    ],
)
def test_a_file_belongs_to_the_operators_that_it_registers_with_the_library_of_torch(source):
    operators = ["mine::norm_fast", "other::norm_fast", "aten::norm"]
    assert operators_touched(["csrc/a.cpp"], operators, "", {"csrc/a.cpp": source}) == {
        "mine::norm_fast": ("csrc/a.cpp",)
    }


def test_a_file_belongs_to_no_operator_that_it_only_calls_or_has_a_variable_called_like():
    path = "aten/src/ATen/native/Some.cpp"
    source = """Tensor& other_out(const Tensor& self, Tensor& out) {
  auto result = at::gelu(self);
  int gelu = std::max(1, 2);
  return use(gelu), add_(self);
}
static void GeluCUDAKernelImpl(TensorIteratorBase& it) {
"""
    assert set(operators_touched([path], ["aten::add_"], NATIVE_FUNCTIONS, {path: source})) == set()
    assert set(operators_touched([path], ["aten::gelu"], NATIVE_FUNCTIONS, {path: source})) == {"aten::gelu"}
    without = source.partition("static")[0]
    assert operators_touched([path], ["aten::gelu"], NATIVE_FUNCTIONS, {path: without}) == {}


def test_a_kernel_belongs_to_the_file_that_defines_it():
    sources = {
        "a.cu": "template <typename T> __global__ void softmax_warp_forward(T* out) {}",
        "bounds.cu": "static __global__ void __launch_bounds__(256, 2) softmax_warp_forward(float* out)",
        "before.cu": "__global__ C10_LAUNCH_BOUNDS_1(128)\nvoid softmax_warp_forward(float* out)",
        "b.cu": "softmax_warp_forward<float><<<1, 1>>>(out);",
    }
    kernel = "void (anonymous namespace)::softmax_warp_forward<float, 10, false>(float*, int)"
    assert kernels_touched([kernel, "sgemm"], sources) == {kernel: ("a.cu", "bounds.cu", "before.cu")}


@pytest.mark.parametrize(
    "broken",
    [
        "- func: gelu(",
        "- func: gelu(Tensor self)\n  dispatch:\n    CPU gelu_out_cpu\n  dispatch: [",
        "{{{: - &a *a\n- func: : :\n\tdispatch:\n",
        "\0\0- func: gelu(x)\n    " + " " * 200_000 + "\n" + "    a, " * 60_000,
        "- func: " + "g" * 1_000_000,
    ],
)
def test_a_list_that_is_broken_tells_what_it_still_can_and_stops_nothing(broken):
    path = "aten/src/ATen/native/Activation.cpp"
    assert set(operators_touched([path], OPERATORS, broken, {path: "nothing"})) == set()
    assert set(parse_operator_list(broken)) <= {"gelu"}


def test_paths_and_sources_that_mean_ill_are_words_and_no_more():
    paths = [
        "../../etc/gelu",
        "aten/\n`@everyone`|gelu.cpp",
        "-x/(gelu)+.cpp",
        "",
        "\udce9\udcff/gelu.cu",
        "A" * 100_000,
    ]
    sources = {paths[4]: "gelu(" * 50_000 + "REGISTER_DISPATCH(" * 50_000 + "__global__ void " * 50_000 + " " * 200_000}
    assert operators_touched(paths, ["aten::gelu"], "", sources) == {
        "aten::gelu": tuple(paths[at] for at in (0, 1, 2, 4))
    }
    assert kernels_touched(["gelu"], sources) == {}

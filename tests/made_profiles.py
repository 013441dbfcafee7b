"""Made profiles: what an operator takes is said, and noise of a known size is put on it."""

import random
from collections.abc import Callable, Mapping, Sequence

from torchbenchmark.profiles.difference import TestProfiles
from torchbenchmark.profiles.process_profile import KernelUse, OperatorUse, ProcessProfile
from torchbenchmark.profiles.series import ProfiledPair, SideProfile

US = 1e-6
# name -> (calls, µs on the host); kernels: operator -> kernel -> (launches, µs on the GPU)
HOST = {"aten::addmm": (4, 400), "aten::gelu": (2, 200), "aten::add": (6, 60), "aten::view": (9, 9)}
KERNELS = {
    "aten::addmm": {"sgemm_128x64": (4, 400)},
    "aten::gelu": {"GeluCUDAKernel": (2, 60)},
    "aten::add": {"vectorized_add": (6, 30)},
}
Host = Mapping[str, tuple[float, float]]
Kernels = Mapping[str, Mapping[str, tuple[float, float]]]


def side(
    draw: Callable[[], float],
    host: Host,
    kernels: Kernels | None = None,
    python: float = 300,
    waiting: float = 0,
    cost: float = 20,
    counts: Mapping[str, float] | None = None,
) -> SideProfile:
    """One process; `draw()` is a factor for each value; `cost` is in profiled iterations and not in timed ones."""
    kernels = kernels or {}
    operators = tuple(
        OperatorUse(
            name=name,
            calls=host.get(name, (0, 0))[0],
            host_s=host.get(name, (0, 0))[1] * US * draw(),
            kernels=tuple(
                KernelUse(name=kernel, launches=launches, seconds=microseconds * US * draw())
                for kernel, (launches, microseconds) in kernels.get(name, {}).items()
            ),
        )
        for name in {**host, **kernels}
    )
    outside, wait = python * US * draw(), waiting * US * draw()
    wall = sum(one.host_s for one in operators) + outside + wait
    gpu = sum(kernel.seconds for one in operators for kernel in one.kernels)
    channels = {"latency": wall - cost * US, **({"gpu_time": gpu} if gpu else {}), **(counts or {})}
    profile = ProcessProfile(iterations=10, wall_s=wall, outside_s=outside, waiting_s=wait, operators=operators)
    return SideProfile(profile, channels)


def profiles(
    base: Sequence[object],
    head: Sequence[object],
    device: str = "cpu",
    pairs: int = 6,
    noise: float = 0.01,
    seed: int = 1,
) -> TestProfiles:
    """Pairs of processes; `base` and `head` are (host, kernels, python, waiting) of a side, as many as are named."""
    generator = random.Random(seed)

    def draw() -> float:
        return generator.lognormvariate(0.0, noise)

    return TestProfiles(
        test=f"test_eval[made-{device}-eager]",
        head_test=f"test_eval[made-{device}-eager]",
        device=device,
        pairs=tuple(ProfiledPair(side(draw, *base), side(draw, *head)) for _ in range(pairs)),
    )

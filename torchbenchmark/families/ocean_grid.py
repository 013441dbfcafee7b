"""The work that V1's two kernels of an ocean model have in common: double precision on a grid, no training.

The kernels are those of PyHPC-benchmarks, from the ocean model Veros (Häfner et al. 2018). A grid is `cells`, the
numbers of cells eastward, northward and upward; the tensors have the axes [batch, east, north, up], level 0 at the
bottom.
"""

import torch

from torchbenchmark.model import BenchmarkModel


class OceanKernel(BenchmarkModel):
    """An inference over a batch of grids in float64; a subclass gives the module and its inputs."""

    def setup(self) -> None:
        if self.test != "eval":
            raise NotImplementedError(f"{self.name} has nothing to train: it has no parameters, only test='eval'")
        with torch.device(self.device):
            self.build_kernel()

    def build_kernel(self) -> None:
        raise NotImplementedError(f"{self.name} has no kernel: give it a build_kernel()")

    def uniform(self, low: float, high: float) -> torch.Tensor:
        """Random values in every cell of every grid."""
        return low + (high - low) * torch.rand(self.batch_size, *self.shape["cells"], dtype=torch.float64)

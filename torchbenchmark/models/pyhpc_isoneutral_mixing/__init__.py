"""pyhpc_isoneutral_mixing: the tensor that mixes along surfaces of equal density in an ocean model."""

import torch

from torchbenchmark.families.ocean_grid import OceanKernel
from torchbenchmark.model import Preset
from torchbenchmark.models.pyhpc_isoneutral_mixing.mixing import IsoneutralMixing

METRES = 1e5  # between cells, as in a model of one degree
DEEPEST = 5000.0
MOST_NORTHERN = 1.2  # latitude in radians


class Model(OceanKernel):
    """Slices, shifts and writes into slices: 23 arrays, of which the kernel makes the last seven."""

    PRESETS = {
        "full": Preset(train_batch=1, eval_batch=1, shape={"cells": (323, 323, 41)}),
        "head": Preset(train_batch=1, eval_batch=1, shape={"cells": (204, 204, 26)}),
        "tiny": Preset(train_batch=1, eval_batch=1, shape={"cells": (40, 40, 12)}),
    }

    def build_kernel(self) -> None:
        east, north, up = self.shape["cells"]
        latitude = torch.linspace(-MOST_NORTHERN, MOST_NORTHERN, north, dtype=torch.float64)
        depth = torch.linspace(-DEEPEST, 0.0, up, dtype=torch.float64)
        widths = {
            name: spacing * (0.9 + 0.2 * torch.rand(cells, dtype=torch.float64))
            for name, cells, spacing in (
                ("dxt", east, METRES),
                ("dxu", east, METRES),
                ("dyt", north, METRES),
                ("dyu", north, METRES),
                ("dzt", up, DEEPEST / up),
                ("dzw", up, DEEPEST / up),
            )
        }
        self.module = IsoneutralMixing(
            {**widths, "cost": latitude.cos(), "cosu": (latitude + MOST_NORTHERN / north).cos(), "zt": depth}
        )
        water = self.random_sea_floor()
        self.example_inputs = (
            self.uniform(34.8, 35.2),
            self.uniform(-0.5, 0.5) + torch.linspace(2.0, 25.0, up, dtype=torch.float64),
            self.uniform(0.0, 1000.0),
            water,
            water * water.roll(-1, dims=1),
            water * water.roll(-1, dims=2),
            water * water.roll(-1, dims=3),
        )

    def random_sea_floor(self) -> torch.Tensor:
        """1 in the cells that hold water, which are those above the floor; 0 below."""
        east, north, up = self.shape["cells"]
        floor = torch.randint(up // 2, (self.batch_size, east, north, 1))
        return (torch.arange(up) >= floor).double()

"""pyhpc_equation_of_state: how the enthalpy of sea water changes with temperature, cell by cell in an ocean model."""

import torch
from torch import nn

from torchbenchmark.families.ocean_grid import OceanKernel
from torchbenchmark.model import Preset
from torchbenchmark.models.pyhpc_equation_of_state.seawater import enthalpy_slope

DEEPEST_DBAR = 5000.0


class Model(OceanKernel):
    """Some 250 elementwise operators in a row, each over the whole grid: their speed is that of memory."""

    PRESETS = {
        "full": Preset(train_batch=1, eval_batch=1, shape={"cells": (323, 323, 41)}),
        "head": Preset(train_batch=1, eval_batch=1, shape={"cells": (204, 204, 26)}),
        "tiny": Preset(train_batch=1, eval_batch=1, shape={"cells": (48, 48, 16)}),
    }

    def build_kernel(self) -> None:
        levels = self.shape["cells"][-1]
        self.module = EnthalpySlope()
        self.example_inputs = (
            self.uniform(30.0, 40.0),
            self.uniform(-2.0, 30.0),
            torch.linspace(DEEPEST_DBAR, 0.0, levels, dtype=torch.float64),
        )


class EnthalpySlope(nn.Module):
    """Salinity and temperature are [batch, east, north, up], pressure is [up]."""

    def forward(self, salinity: torch.Tensor, temperature: torch.Tensor, pressure: torch.Tensor) -> torch.Tensor:
        return enthalpy_slope(salinity, temperature, pressure)

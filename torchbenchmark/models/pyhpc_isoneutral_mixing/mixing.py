"""Isoneutral mixing: how much a tracer spreads along surfaces of equal density, and how steep those are (Griffies et
al. 1998, Isoneutral Diffusion in a z-Coordinate Ocean Model).

A face between two cells has four triads: one of the two cells, and one of two perpendicular faces of it. In each, the
slope of the surface is the horizontal gradient of density over the vertical one, both with the expansion coefficients
of that cell. Where the surface is steep the mixing along it is tapered off (Danabasoglu and McWilliams 1995).

Fields are [batch, east, north, up], level 0 at the bottom. TorchScript, which V1 measures, reads no numbers of a
module, so the constants stand where they are used.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import nn

# By what each array of the grid is broadcast over [east, north, up]; the names are those of ocean models: widths of
# cells (t) and between their centres (u, w) in metres, cosines of latitude of centres and northern faces, heights of
# centres.
GRID = {
    "dxt": (-1, 1, 1),
    "dxu": (-1, 1, 1),
    "dyt": (-1, 1),
    "dyu": (-1, 1),
    "dzt": (-1,),
    "dzw": (-1,),
    "cost": (-1, 1),
    "cosu": (-1, 1),
    "zt": (-1,),
}


class Water(NamedTuple):
    """The expansion coefficients of the cells, and the gradients of temperature (t) and salinity (s) at their faces."""

    warm: torch.Tensor
    salt: torch.Tensor
    t_east: torch.Tensor
    s_east: torch.Tensor
    t_north: torch.Tensor
    s_north: torch.Tensor
    t_up: torch.Tensor
    s_up: torch.Tensor


class IsoneutralMixing(nn.Module):
    """The mixing where there are two cells on every side in the horizontal; beyond, the results are 0."""

    def __init__(self, grid: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        for name, shape in GRID.items():
            self.register_buffer(name, grid[name].reshape(shape), persistent=False)

    def forward(
        self,
        salinity: torch.Tensor,
        temperature: torch.Tensor,
        diffusivity: torch.Tensor,
        wet: torch.Tensor,
        wet_east: torch.Tensor,
        wet_north: torch.Tensor,
        wet_up: torch.Tensor,
    ) -> tuple[
        torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor
    ]:  # fmt: skip
        """`wet...` is 1 where a cell, or its face in that direction, is of water, and 0 on land.

        Returns the diffusivities K_11, K_22 and K_33 at the eastern, northern and upper faces, and the tapered slopes
        of the triads, [batch, east, north, up, 2, 2]: Ai_ez, Ai_nz at the eastern and northern, Ai_bx, Ai_by at the
        upper.
        """
        water = self.expansion_and_gradients(salinity, temperature, wet, wet_east, wet_north, wet_up)
        k_11, ai_ez = self.mixing_eastward(water, diffusivity, wet_east)
        k_22, ai_nz = self.mixing_northward(water, diffusivity, wet_north)
        k_33, ai_bx, ai_by = self.mixing_upward(water, diffusivity, wet_up)
        return k_11, k_22, k_33, ai_ez, ai_nz, ai_bx, ai_by

    def expansion_and_gradients(
        self,
        salinity: torch.Tensor,
        temperature: torch.Tensor,
        wet: torch.Tensor,
        wet_east: torch.Tensor,
        wet_north: torch.Tensor,
        wet_up: torch.Tensor,
    ) -> Water:
        """Gradients are 0 at faces to land, and at the last face in each direction."""
        t_east, s_east = torch.zeros_like(salinity), torch.zeros_like(salinity)
        t_north, s_north = torch.zeros_like(salinity), torch.zeros_like(salinity)
        t_up, s_up = torch.zeros_like(salinity), torch.zeros_like(salinity)
        east = wet_east[:, :-1] / (self.dxu[:-1] * self.cost)
        t_east[:, :-1] = east * (temperature[:, 1:] - temperature[:, :-1])
        s_east[:, :-1] = east * (salinity[:, 1:] - salinity[:, :-1])
        north = wet_north[:, :, :-1] / self.dyu[:-1]
        t_north[:, :, :-1] = north * (temperature[:, :, 1:] - temperature[:, :, :-1])
        s_north[:, :, :-1] = north * (salinity[:, :, 1:] - salinity[:, :, :-1])
        up = wet_up[:, :, :, :-1] / self.dzw[:-1]
        t_up[:, :, :, :-1] = up * (temperature[:, :, :, 1:] - temperature[:, :, :, :-1])
        s_up[:, :, :, :-1] = up * (salinity[:, :, :, 1:] - salinity[:, :, :, :-1])
        warm = wet * thermal_expansion(temperature, self.zt)
        salt = wet * haline_contraction(salinity)
        return Water(warm, salt, t_east, s_east, t_north, s_north, t_up, s_up)

    def mixing_eastward(
        self, water: Water, diffusivity: torch.Tensor, wet_east: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """K_11 and Ai_ez[..., side, above]: of the cell on this or the other side of the face, its lower or upper
        face."""
        columns, levels = diffusivity.shape[1], diffusivity.shape[3]
        k_11 = torch.zeros_like(diffusivity)
        ai_ez = diffusivity.new_zeros(triads_of(diffusivity))
        along = 0.5 * (diffusivity[:, 1:-2, 2:-2] + diffusivity[:, 2:-1, 2:-2])
        for above in range(2):
            low = 1 - above  # the lowest cell has no lower face
            wet = wet_east[:, 1:-2, 2:-2, low:]
            for side in range(2):
                first, last = 1 + side, columns - 2 + side
                slope = slope_of(
                    water.warm[:, first:last, 2:-2, low:],
                    water.salt[:, first:last, 2:-2, low:],
                    water.t_east[:, 1:-2, 2:-2, low:],
                    water.s_east[:, 1:-2, 2:-2, low:],
                    water.t_up[:, first:last, 2:-2, : levels - low],
                    water.s_up[:, first:last, 2:-2, : levels - low],
                )
                kept = taper(slope)
                k_11[:, 1:-2, 2:-2, low:] += self.dzw[: levels - low] * wet * at_least(along[:, :, :, low:] * kept)
                ai_ez[:, 1:-2, 2:-2, low:, side, above] = kept * slope * wet
        k_11[:, 1:-2, 2:-2] /= 4 * self.dzt
        return k_11, ai_ez

    def mixing_northward(
        self, water: Water, diffusivity: torch.Tensor, wet_north: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """K_22 and Ai_nz, as K_11 and Ai_ez."""
        rows, levels = diffusivity.shape[2], diffusivity.shape[3]
        k_22 = torch.zeros_like(diffusivity)
        ai_nz = diffusivity.new_zeros(triads_of(diffusivity))
        along = 0.5 * (diffusivity[:, 2:-2, 1:-2] + diffusivity[:, 2:-2, 2:-1])
        for above in range(2):
            low = 1 - above
            wet = wet_north[:, 2:-2, 1:-2, low:]
            for side in range(2):
                first, last = 1 + side, rows - 2 + side
                slope = slope_of(
                    water.warm[:, 2:-2, first:last, low:],
                    water.salt[:, 2:-2, first:last, low:],
                    water.t_north[:, 2:-2, 1:-2, low:],
                    water.s_north[:, 2:-2, 1:-2, low:],
                    water.t_up[:, 2:-2, first:last, : levels - low],
                    water.s_up[:, 2:-2, first:last, : levels - low],
                )
                kept = taper(slope)
                k_22[:, 2:-2, 1:-2, low:] += self.dzw[: levels - low] * wet * at_least(along[:, :, :, low:] * kept)
                ai_nz[:, 2:-2, 1:-2, low:, side, above] = kept * slope * wet
        k_22[:, 2:-2, 1:-2] /= 4 * self.dzt
        return k_22, ai_nz

    def mixing_upward(
        self, water: Water, diffusivity: torch.Tensor, wet_up: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """K_33, and Ai_bx and Ai_by[..., side, above]: of the cell below or above the face, its western or eastern,
        southern or northern face."""
        columns, rows, levels = diffusivity.shape[1], diffusivity.shape[2], diffusivity.shape[3]
        k_33 = torch.zeros_like(diffusivity)
        ai_bx = diffusivity.new_zeros(triads_of(diffusivity))
        ai_by = diffusivity.new_zeros(triads_of(diffusivity))
        wet = wet_up[:, 2:-2, 2:-2, :-1]
        along = diffusivity[:, 2:-2, 2:-2, :-1] * wet
        eastward, northward = torch.zeros_like(along), torch.zeros_like(along)
        t_up, s_up = water.t_up[:, 2:-2, 2:-2, :-1], water.s_up[:, 2:-2, 2:-2, :-1]
        for above in range(2):
            end = levels - 1 + above
            warm, salt = water.warm[:, 2:-2, 2:-2, above:end], water.salt[:, 2:-2, 2:-2, above:end]
            for side in range(2):
                first, last = 1 + side, columns - 3 + side
                t_east, s_east = (
                    water.t_east[:, first:last, 2:-2, above:end],
                    water.s_east[:, first:last, 2:-2, above:end],
                )
                slope = slope_of(warm, salt, t_east, s_east, t_up, s_up)
                kept = taper(slope)
                eastward += self.dxu[first:last] * along * kept * slope * slope
                ai_bx[:, 2:-2, 2:-2, :-1, side, above] = kept * slope * wet

                first, last = 1 + side, rows - 3 + side
                t_north = water.t_north[:, 2:-2, first:last, above:end]
                s_north = water.s_north[:, 2:-2, first:last, above:end]
                slope = slope_of(warm, salt, t_north, s_north, t_up, s_up)
                kept = taper(slope)
                northward += (self.cosu * self.dyu)[first:last] * along * kept * slope * slope
                ai_by[:, 2:-2, 2:-2, :-1, side, above] = kept * slope * wet
        k_33[:, 2:-2, 2:-2, :-1] = eastward / (4 * self.dxt[2:-2]) + northward / (4 * (self.dyt * self.cost)[2:-2])
        return k_33, ai_bx, ai_by


def triads_of(field: torch.Tensor) -> list[int]:
    return list(field.shape) + [2, 2]  # noqa: RUF005 - TorchScript has no unpacking


def slope_of(
    warm: torch.Tensor,
    salt: torch.Tensor,
    t_along: torch.Tensor,
    s_along: torch.Tensor,
    t_up: torch.Tensor,
    s_up: torch.Tensor,
) -> torch.Tensor:
    """The slope of a surface of equal density. Unstable water gets an endless one, which is tapered to nothing."""
    along = warm * t_along + salt * s_along
    upward = warm * t_up + salt * s_up
    return along / (1e-20 - upward.clamp(max=0.0))


def taper(slope: torch.Tensor) -> torch.Tensor:
    """Near 1 for flat surfaces, 1/2 at a slope of 1e-3, 0 for steep ones; the step is 1e-3 wide."""
    return 0.5 * (1.0 + torch.tanh((1e-3 - slope.abs()) / 1e-3))


def at_least(diffusivity: torch.Tensor) -> torch.Tensor:
    """The mixing that is left where surfaces are steep, 50 m^2/s."""
    return diffusivity.clamp(min=50.0)


def thermal_expansion(temperature: torch.Tensor, height: torch.Tensor) -> torch.Tensor:
    """How density changes with temperature, by the simple equation of state of Vallis (2006), in kg/(m^3 K): volume
    grows by 1.67e-4 for a degree about 283 K, by 1e-5 more for each degree above that, and more under pressure."""
    pressure = 1024.0 * 9.81 * height.abs()
    return -1024.0 * (1.67e-4 * (1.0 + 1.1e-8 * pressure) + 1e-5 * (temperature - (283.0 - 273.15)))


def haline_contraction(salinity: torch.Tensor) -> torch.Tensor:
    """How density changes with salinity, by the same equation of state, in kg/m^3 for each g/kg."""
    return 1024.0 * 0.78e-3 * torch.ones_like(salinity)

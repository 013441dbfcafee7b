"""The kernels of an ocean model: sea water against published values and an integral taken numerically, mixing against
loops over cells and against a plane of equal density."""

import math

import numpy
import pytest
import torch

from torchbenchmark.models import pyhpc_equation_of_state, pyhpc_isoneutral_mixing
from torchbenchmark.models.pyhpc_equation_of_state.seawater import enthalpy_slope, polynomials
from torchbenchmark.models.pyhpc_isoneutral_mixing.mixing import IsoneutralMixing

HEAT_CAPACITY = 3991.86795711963  # c_p^0 of TEOS-10, in J/(kg K)
PASCALS = 1e4  # in a decibar
KERNELS = (pyhpc_equation_of_state.Model, pyhpc_isoneutral_mixing.Model)

every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def doubles(*values):
    return torch.tensor(values, dtype=torch.float64)


def specific_volume(s, t, p):
    a0, a1, a2, a3, b0, b1, b2 = polynomials(s, t)
    return (a0 + a1 * p + a2 * p**2 + a3 * p**3) / (b0 + 2 * b1 * p + b2 * p**2)


def dynamic_enthalpy(s, t, p):
    """The integral of specific volume over pressure, by Gauss and Legendre's rule."""
    places, weights = numpy.polynomial.legendre.leggauss(16)
    return sum(
        weight * p / 2 * PASCALS * specific_volume(s, t, (place + 1) * p / 2)
        for place, weight in zip(places, weights, strict=True)
    )


def test_density_and_enthalpy_of_sea_water_are_the_published_check_values_of_the_48_terms():
    s, t, p = doubles(34.7118), doubles(28.8099), doubles(10.0)
    assert 1 / specific_volume(s, t, p).item() == pytest.approx(1021.8404465661, rel=1e-13)
    enthalpy = HEAT_CAPACITY * t + dynamic_enthalpy(s, t, p)
    assert enthalpy.item() == pytest.approx(1.1510318130700132e5, rel=1e-14)


def test_the_slope_of_enthalpy_is_that_of_the_integral_of_specific_volume():
    generator = torch.Generator().manual_seed(0)
    s, t, p = (
        low + (high - low) * torch.rand(200, dtype=torch.float64, generator=generator)
        for low, high in ((0.0, 42.0), (-2.0, 33.0), (1.0, 6000.0))
    )
    t.requires_grad_()
    (expected,) = torch.autograd.grad(dynamic_enthalpy(s, t, p).sum(), t)
    torch.testing.assert_close(enthalpy_slope(s, t.detach(), p), expected, rtol=1e-9, atol=1e-11)


def test_at_the_surface_enthalpy_does_not_depend_on_how_water_is_compressed():
    assert enthalpy_slope(doubles(35.0, 0.0), doubles(10.0, 4.0), doubles(0.0, 0.0)).abs().max() < 1e-11


def test_the_model_asks_for_the_slope_in_every_cell_at_the_pressure_of_its_level():
    model = pyhpc_equation_of_state.Model(test="eval", device="cpu", preset="tiny", batch_size=2)
    s, t, p = model.example_inputs
    (slope,) = model.invoke()
    assert slope.dtype == torch.float64
    torch.testing.assert_close(slope[1, 3, 5, 7], enthalpy_slope(s[1, 3, 5, 7], t[1, 3, 5, 7], p[7]))


def made_grid(cells):
    east, north, up = cells
    generator = torch.Generator().manual_seed(1)

    def widths(count, about):
        return about * (0.8 + 0.4 * torch.rand(count, dtype=torch.float64, generator=generator))

    return {
        "dxt": widths(east, 100.0),
        "dxu": widths(east, 100.0),
        "dyt": widths(north, 100.0),
        "dyu": widths(north, 100.0),
        "dzt": widths(up, 10.0),
        "dzw": widths(up, 10.0),
        "cost": widths(north, 0.8),
        "cosu": widths(north, 0.8),
        "zt": torch.linspace(-3000.0, 0.0, up, dtype=torch.float64),
    }


def made_sea(cells):
    """Temperature, salinity, diffusivity and four masks, with land anywhere."""
    generator = torch.Generator().manual_seed(2)

    def random():
        return torch.rand(1, *cells, dtype=torch.float64, generator=generator)

    masks = [(random() > 0.2).double() for _ in range(4)]
    warm_above = 5.0 * torch.arange(cells[2])
    return (34 + 0.1 * random(), warm_above + 0.1 * random(), 1000 * random(), *masks)


def expansion(t, z):
    """Vallis' simple equation of state: density per degree, and per g/kg."""
    per_degree = 1.67e-4 * (1 + 1.1e-8 * 1024 * 9.81 * abs(z)) + 1e-5 * (t - 9.85)
    return -1024 * per_degree, 1024 * 0.78e-3


class ByCell:
    """Mixing at one face at a time, on numbers: the equations of Griffies et al. as they stand."""

    def __init__(self, grid, sea):
        self.grid = {name: values.tolist() for name, values in grid.items()}
        names = ("salinity", "temperature", "diffusivity", "wet", "wet_east", "wet_north", "wet_up")
        self.sea = {name: field[0].tolist() for name, field in zip(names, sea, strict=True)}
        self.cells = tuple(sea[0].shape[1:])

    def at(self, name, cell):
        i, j, k = cell
        return self.sea[name][i][j][k]

    def gradient(self, name, cell, axis):
        """From a cell to its neighbour; 0 where there is none, or land."""
        i, j, k = cell
        neighbour = tuple(place + (axis == number) for number, place in enumerate(cell))
        if neighbour[axis] >= self.cells[axis]:
            return 0.0
        grid = self.grid
        distance = (grid["dxu"][i] * grid["cost"][j], grid["dyu"][j], grid["dzw"][k])[axis]
        wet = self.at(("wet_east", "wet_north", "wet_up")[axis], cell)
        return wet * (self.at(name, neighbour) - self.at(name, cell)) / distance

    def triad(self, cell, along, up, axis):
        """Slope and taper: expansion of `cell`, gradients from `along` in the direction of `axis` and from `up`
        upward."""
        warm, salt = (
            self.at("wet", cell) * one for one in expansion(self.at("temperature", cell), self.grid["zt"][cell[2]])
        )
        horizontal = warm * self.gradient("temperature", along, axis) + salt * self.gradient("salinity", along, axis)
        vertical = warm * self.gradient("temperature", up, 2) + salt * self.gradient("salinity", up, 2)
        slope = -horizontal / (min(0.0, vertical) - 1e-20)
        return slope, 0.5 * (1 + math.tanh((-abs(slope) + 1e-3) / 1e-3))

    def sideways(self, face, axis):
        """Diffusivity and the slopes [side][above] at the face beyond a cell, eastward (0) or northward (1)."""
        other = tuple(place + (axis == number) for number, place in enumerate(face))
        wet = self.at(("wet_east", "wet_north")[axis], face)
        mixing = 0.5 * (self.at("diffusivity", face) + self.at("diffusivity", other))
        total, slopes = 0.0, [[0.0, 0.0], [0.0, 0.0]]
        for side, cell in enumerate((face, other)):
            for above in range(2):
                interface = (cell[0], cell[1], cell[2] - 1 + above)
                if interface[2] < 0:
                    continue
                slope, taper = self.triad(cell, face, interface, axis)
                total += self.grid["dzw"][interface[2]] * wet * max(50.0, mixing * taper)
                slopes[side][above] = taper * slope * wet
        return total / (4 * self.grid["dzt"][face[2]]), slopes

    def upwards(self, cell):
        """Diffusivity at the face above a cell, and the slopes [side][above] eastward and northward."""
        i, j, k = cell
        grid, wet = self.grid, self.at("wet_up", cell)
        sums, slopes = [0.0, 0.0], [[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]
        for axis in range(2):
            for side in range(2):
                for above in range(2):
                    here = (i, j, k + above)
                    along = tuple(place - (1 - side) * (axis == number) for number, place in enumerate(here))
                    slope, taper = self.triad(here, along, cell, axis)
                    width = grid["dxu"][along[0]] if axis == 0 else grid["dyu"][along[1]] * grid["cosu"][along[1]]
                    sums[axis] += width * self.at("diffusivity", cell) * taper * slope**2 * wet
                    slopes[axis][side][above] = taper * slope * wet
        return sums[0] / (4 * grid["dxt"][i]) + sums[1] / (4 * grid["dyt"][j] * grid["cost"][j]), *slopes


def test_mixing_over_whole_arrays_is_mixing_face_by_face():
    cells = east, north, up = (6, 7, 5)
    grid, sea = made_grid(cells), made_sea(cells)
    by_cell = ByCell(grid, sea)
    expected = [torch.zeros(1, *cells, *triads, dtype=torch.float64) for triads in [()] * 3 + [(2, 2)] * 4]
    k_11, k_22, k_33, ai_ez, ai_nz, ai_bx, ai_by = (array[0] for array in expected)
    for k in range(up):
        for i in range(1, east - 2):
            for j in range(2, north - 2):
                k_11[i, j, k], slopes = by_cell.sideways((i, j, k), 0)
                ai_ez[i, j, k] = doubles(*slopes)
        for i in range(2, east - 2):
            for j in range(1, north - 2):
                k_22[i, j, k], slopes = by_cell.sideways((i, j, k), 1)
                ai_nz[i, j, k] = doubles(*slopes)
            for j in range(2, north - 2):
                if k < up - 1:
                    k_33[i, j, k], eastward, northward = by_cell.upwards((i, j, k))
                    ai_bx[i, j, k], ai_by[i, j, k] = doubles(*eastward), doubles(*northward)
    for array, wanted in zip(IsoneutralMixing(grid)(*sea), expected, strict=True):
        assert wanted.abs().max() > 1e-4
        torch.testing.assert_close(array, wanted, rtol=1e-10, atol=1e-14)


def test_all_triads_see_the_slope_of_a_plane_of_equal_density_and_keep_what_the_taper_leaves():
    cells = (8, 8, 6)
    even = {name: torch.full_like(values, 10.0) for name, values in made_grid(cells).items()}
    even |= {"cost": torch.ones(8, dtype=torch.float64), "cosu": torch.ones(8, dtype=torch.float64)}
    rise = 5e-4  # of the plane, eastward; twice that northward
    i, j, k = torch.meshgrid(*(torch.arange(count, dtype=torch.float64) for count in cells), indexing="ij")
    temperature = (10.0 + 0.1 * (k - rise * i - 2 * rise * j))[None]
    wet = torch.ones_like(temperature)
    sea = (35 * wet, temperature, 1000 * wet, wet, wet, wet, wet)
    _, _, k_33, ai_ez, ai_nz, ai_bx, ai_by = IsoneutralMixing(even)(*sea)
    kept = [0.5 * (1 + math.tanh(1 - slope / 1e-3)) for slope in (rise, 2 * rise)]
    inside = (0, slice(2, -2), slice(2, -2), slice(1, -1))
    for array, slope, share in ((ai_ez, rise, kept[0]), (ai_bx, rise, kept[0])):
        torch.testing.assert_close(array[inside], torch.full_like(array[inside], share * slope), rtol=1e-9, atol=0)
    for array, slope, share in ((ai_nz, 2 * rise, kept[1]), (ai_by, 2 * rise, kept[1])):
        torch.testing.assert_close(array[inside], torch.full_like(array[inside], share * slope), rtol=1e-9, atol=0)
    expected = 1000 * (kept[0] * rise**2 + kept[1] * (2 * rise) ** 2)
    torch.testing.assert_close(k_33[inside], torch.full_like(k_33[inside], expected), rtol=1e-9, atol=0)


def test_the_kernel_of_mixing_has_the_twenty_three_arrays_of_version_one():
    model = pyhpc_isoneutral_mixing.Model(test="eval", device="cpu", preset="tiny")
    module, inputs = model.get_module()
    results = model.invoke()
    assert len(inputs) + len(list(module.buffers())) + len(results) == 23
    assert {tensor.dtype for tensor in (*inputs, *module.buffers(), *results)} == {torch.float64}


def test_in_the_sea_of_the_model_some_surfaces_are_flat_and_some_steep():
    """So that both ends of the taper are computed, and not a sea of zeros."""
    model = pyhpc_isoneutral_mixing.Model(test="eval", device="cpu", preset="tiny")
    k_11, _, _, ai_ez, *_ = model.invoke()
    wet = k_11[k_11 > 0]
    assert (wet < 51).any() and (wet > 500).any()
    assert (ai_ez > 1e-4).any() and (ai_ez < -1e-4).any()


@every_kernel
@pytest.mark.parametrize(("preset", "cells"), [("full", 2**22), ("head", 2**20)])
def test_a_grid_has_about_as_many_cells_as_a_power_of_two(kernel, preset, cells):
    model = kernel(test="eval", device="meta", preset=preset)
    assert model.example_inputs[0].numel() == pytest.approx(cells, rel=0.04)


@every_kernel
def test_a_kernel_is_not_trained(kernel):
    with pytest.raises(NotImplementedError, match="nothing to train"):
        kernel(test="train", device="cpu", preset="tiny")


@every_kernel
def test_a_kernel_can_be_scripted(kernel):
    model = kernel(test="eval", device="cpu", preset="tiny")
    expected = model.invoke()
    model.set_module(torch.jit.script(model.get_module()[0]))
    for scripted, eager in zip(model.invoke(), expected, strict=True):
        torch.testing.assert_close(scripted, eager, rtol=1e-12, atol=1e-15)

"""What a sample must be before anything is computed from it: numbers, finite, in the right shape, and enough of them.

A NaN or an empty process that slipped through would become a verdict, so every function of this package asks here.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def finite_vector(values: ArrayLike, what: str, *, at_least: int = 1) -> FloatArray:
    """`values` as an array of shape (n,), n >= `at_least`, all finite. `what` names them in the ValueError."""
    vector = _numbers(values, what)
    if vector.ndim != 1:
        raise ValueError(f"{what}: shape {vector.shape}, but one value each is needed, shape (n,)")
    if len(vector) < at_least:
        raise ValueError(f"{what}: {len(vector)} of them, at least {at_least} are needed; measure more")
    return _all_finite(vector, what)


def finite_table(values: ArrayLike, what: str, *, at_least: int = 1) -> FloatArray:
    """`values` as an array of shape (n, m), n >= `at_least` rows, m >= 1 columns, all finite."""
    table = _numbers(values, what)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"{what}: shape {table.shape}, but pairs x series are needed, shape (n, m) with m >= 1")
    if len(table) < at_least:
        raise ValueError(f"{what}: {len(table)} rows, at least {at_least} are needed; measure more")
    return _all_finite(table, what)


def same_length(one: FloatArray, other: FloatArray, what: str) -> None:
    """ValueError unless both arrays have one entry for each of the same things."""
    if len(one) != len(other):
        raise ValueError(f"{what}: {len(one)} and {len(other)} values; give one of each for every pair")


def probability(value: float, what: str) -> float:
    """`value` if it lies strictly between 0 and 1; "level" is asked as .95, never as 95."""
    if not 0 < value < 1:
        raise ValueError(f"{what} {value}: a number between 0 and 1 is needed, such as 0.95")
    return float(value)


def finite_number(value: float, what: str, *, at_least: float | None = None) -> float:
    """`value` as a finite float, not below `at_least`."""
    number = float(value)
    if not np.isfinite(number) or (at_least is not None and number < at_least):
        bound = "" if at_least is None else f" that is not below {at_least:g}"
        raise ValueError(f"{what} {value}: a finite number{bound} is needed")
    return number


def _numbers(values: ArrayLike, what: str) -> FloatArray:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: not an array of numbers; give plain numbers, rows of one length") from None


def _all_finite(array: FloatArray, what: str) -> FloatArray:
    if not np.isfinite(array).all():
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(array))[0])
        position = where[0] if len(where) == 1 else where
        raise ValueError(
            f"{what}: value {array[where]} at {position} is not finite; leave failed measurements out first"
        )
    return array

"""How far a figure is on the right side of what is asked of it, in standard deviations of its bootstrap."""

import math

import numpy as np


def slack_of(margin: float, draws: np.ndarray) -> float:
    """`margin`: of the estimate, positive on the right side. A figure that no draw moves is met or missed for sure."""
    spread = float(np.std(draws, ddof=1))
    return margin / spread if spread > 0 else math.copysign(math.inf, margin)


def slack_of_ahead(draws: np.ndarray) -> float:
    """Of a paired difference whose whole 95 % interval must be above 0: the margin is its lower end."""
    return slack_of(float(np.quantile(draws, 0.025)), draws)

"""What most benchmark actions do: tonight against the nights before, and a flat threshold."""

import numpy as np

NIGHTS = 7


def flat_rule(values: np.ndarray, threshold: float) -> list[tuple[int, int]]:
    """(onset, reported) of each excursion beyond the threshold: its first night, once. Tonight is held against the
    median of the last 7 nights."""
    found = []
    outside = 0
    for night in range(NIGHTS, len(values)):
        change = values[night] / np.median(values[night - NIGHTS : night]) - 1
        side = int(np.sign(change)) if abs(change) > threshold else 0
        if side and side != outside:
            found.append((night, night))
        outside = side
    return found

"""Effects as shares, as people read them, and as logarithms, as the rules take them: with an end either way.

What a build runs may say that a second took 1e-300 s. No share of that can be written, and a state that holds it would
break every night to come; so what is larger than anything that two builds differ by is told as that.
"""

import math

LARGEST_LOG = 50.0  # 5e21 times slower or faster
SHARE_GONE = 0.5  # of the confirmed effect: what is below that is no longer the change that was filed


def share_of(log_ratio: float) -> float:
    """ln(head / base) as a share; slower is positive."""
    return math.expm1(max(-LARGEST_LOG, min(log_ratio, LARGEST_LOG)))


def log_of(share: float) -> float:
    """A share as ln(head / base). Nothing is left of what is faster by 100 %."""
    return max(-LARGEST_LOG, min(math.log1p(share), LARGEST_LOG)) if share > -1 else -LARGEST_LOG


def gone_below(effect: float) -> float:
    """What a confirmed change is below when it is gone: half of its logarithm. Both are shares, slower is positive."""
    return share_of(SHARE_GONE * log_of(effect))

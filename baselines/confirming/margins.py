"""What a change must be beyond, of each channel: re-estimated from builds that were compared with themselves.

The margin is the 95 % quantile of what zygotes of one build differ by (DESIGN 6.4). One comparison of a build with
itself is twelve pairs of fresh zygotes; its effect is such a difference, and the noise of twelve pairs besides. That
noise is what bets are made on anyway, so only comparisons that are sharp enough to show a margin count: those of noisy
tests would raise it to their own noise, and blind the detector for all others.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from baselines.confirming.rules import Rules
from baselines.confirming.state import Accounts, ClassState

ENOUGH = 40  # sharp comparisons of a channel: two may lie beyond the quantile, whatever they are
QUANTILE = 0.95
SHARP = 1.0  # half-width of a comparison's interval, in margins that are not estimated: at most this
# Times that margin, at which an estimate ends. What builds differ by beside their zygotes, no comparison of one with
# itself can show, so that a quiet class does not go far below.
LEAST, MOST = 0.8, 2.0


def with_margins(rules: Rules, state: ClassState) -> Rules:
    """The rules with the margins that a class has come to by now, and with what people have called noise in it."""
    return replace(
        rules,
        margins=estimated_margins(state.accounts, rules),
        noise={test: one.margin for test, one in state.noisy.items() if one.width},
        flaky=frozenset(test for test, one in state.noisy.items() if not one.width),
    )


def estimated_margins(accounts: Accounts, rules: Rules) -> Mapping[str, float]:
    """By channel, in log units; one of which too little is known has none, and keeps the margin of the rules."""
    found = {}
    for channel in sorted(accounts.aa_effects):
        sharp = sharp_effects(accounts, channel, rules)
        if len(sharp) >= ENOUGH:
            quantile = sorted(map(abs, sharp))[math.ceil(QUANTILE * len(sharp)) - 1]
            found[channel] = min(max(quantile, LEAST * rules.margin), MOST * rules.margin)
    return found


def sharp_effects(accounts: Accounts, channel: str, rules: Rules) -> list[float]:
    """The effects of builds against themselves that say something of a margin, in log units."""
    effects, widths = accounts.aa_effects.get(channel, []), accounts.aa_half_widths.get(channel, [])
    newest = zip(reversed(effects), reversed(widths), strict=False)  # the oldest may be of before widths were kept
    return [effect for effect, width in newest if width <= SHARP * rules.margin]

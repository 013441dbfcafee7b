"""What a bisection is expected to take, from simulated ones (docs/bisection.md)."""

import math

from bot.bisection.account import duration
from bot.bisection.document import Document, Noun, known_seconds
from bot.bisection.driving import REHEARSAL
from bot.bisection.state import Rules

ENDS = 2
AGREEING: int = Rules.model_fields["agreeing"].default
# Medians of the simulation at a step of 2 sd, 16 to 1024 commits, a line through them; see "A step of 2 sd".
PAIRS, PAIRS_PER_BIT = 16.0, 6.3
MOST_END_PAIRS = 40


def plan_lines(
    commits: int,
    known: Document | None,
    build_s: float | None,
    pair_s: float | None,
    noun: Noun = "commit",
    *,
    exact: bool = False,
    closing: int = 0,
    reverts: bool = True,
) -> list[str]:
    """The plan of a range with so many commits after its good end. Seconds that are not given are those of a
    bisection that was begun. `exact`: runs that have to agree, instead of pairs. `closing`: pairs of each of the two
    comparisons after it."""
    bits = math.log2(commits)
    builds = ENDS + math.ceil(bits)
    pairs = AGREEING * builds if exact else REHEARSAL + PAIRS + PAIRS_PER_BIT * bits
    unit = "run" if exact else "pair"
    done_builds = len(known.made) if known else 0
    done_pairs = sum(len(visit.values) for visit in known.visits) if known else 0
    if known is not None:
        seen = known_seconds(known.made, known.visits)
        build_s, pair_s = build_s if build_s is not None else seen[0], pair_s if pair_s is not None else seen[1]
    lines = [
        f"{noun}s: {commits}",
        f"builds: about {builds}, both ends with them; half as many again where a fifth does not build",
        f"runs: about {pairs:.0f}, {AGREEING} of each build; {AGREEING * ENDS} and {ENDS} builds if nothing changed"
        if exact
        else f"pairs: about {pairs:.0f} for a change of twice a pair's spread, hundreds for one of a pair's spread; "
        f"about {REHEARSAL + MOST_END_PAIRS} pairs and {ENDS} builds if nothing changed",
    ]
    if closing:
        after = (2 * AGREEING if exact else closing) * (2 if reverts else 1)
        without = ", and a build of the bad end without it" if reverts else ""
        lines.append(f"once a culprit is found: {after} {unit}s more{without}")
        pairs += after
        builds += reverts
    if done_builds or done_pairs:
        lines.append(f"done already: {done_builds} builds, {done_pairs} {unit}s")
    if build_s is None or pair_s is None:
        lines.append("time: not known before a build and a pair were made; say --build-seconds and --pair-seconds")
    else:
        left = max(builds - done_builds, 0) * build_s + max(pairs - done_pairs, 0) * pair_s
        lines.append(f"time: about {duration(left)} ({build_s:.3g} s a build, {pair_s:.3g} s a {unit})")
    return lines

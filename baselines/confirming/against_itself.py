"""Tonight's build against itself: how often nothing is taken for something."""

import math
import random
from dataclasses import replace

from baselines.confirming.shares import share_of
from baselines.confirming.state import Interval
from baselines.confirming.tonight import Tonight
from baselines.confirming.trials import Trial, intervals

KEPT_EFFECTS = 400


def hold_against_itself(tonight: Tonight) -> None:
    """Tonight's build against itself, one test: how often is nothing taken for something?"""
    seen, rules, accounts = tonight.seen, tonight.rules, tonight.state.accounts
    there = [row for row in range(len(seen.series)) if tonight.is_there(row)]
    if not there:
        return
    row = random.Random(f"against itself {seen.tonight.isoformat()}").choice(there)
    trial = Trial(seen.series[row], "regression", seen.builds[-1], seen.builds[-1], float(tonight.rows.pair_sd[row]), 1)
    ((again, spent),) = intervals([trial], tonight.bench, replace(rules, interval_pairs=rules.aa_pairs))
    tonight.spend(spent)
    if not again.persistent:
        return
    accounts.aa_tries += 1
    accounts.aa_covered += again.low <= 0 <= again.high
    if math.isfinite(trial.pair_sd):
        either_way = (replace(trial, kind=kind, candidates=2) for kind in ("regression", "improvement"))
        accounts.aa_confirmed += any(one.judged(again.log_ratios, rules).verdict == "confirmed" for one in either_way)
    effects = accounts.aa_effects.setdefault(trial.key.channel, [])
    effects.append(again.effect)
    del effects[:-KEPT_EFFECTS]
    widths = accounts.aa_half_widths.setdefault(trial.key.channel, [])
    widths.append((again.high - again.low) / 2)
    del widths[:-KEPT_EFFECTS]
    tonight.outcome.intervals.append(
        (
            Interval(
                test=trial.key.test,
                channel=trial.key.channel,
                base=seen.tonight,
                head=seen.tonight,
                effect=share_of(again.effect),
                low=share_of(again.low),
                high=share_of(again.high),
            ),
            False,
        )
    )

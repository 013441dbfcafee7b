"""How often a class screens, confirms and files, and how often it would take nothing for something."""

import math

from baselines.confirming.state import Accounts, Rates
from torchbenchmark.quantity import counted

NIGHTS = 30.0
_SURE = 0.05


def rates_of(accounts: Accounts) -> Rates:
    """What the accounts of a class come to in thirty nights; of fewer nights, what they have come to so far: one alert
    in four nights is no sign of eight in a month."""
    share = NIGHTS / max(accounts.nights, NIGHTS)
    return Rates(
        nights=accounts.nights,
        screened=accounts.screened * share,
        candidates=accounts.candidates * share,
        confirmed=accounts.confirmed * share,
        filed=accounts.filed * share,
        aa_tries=accounts.aa_tries,
        aa_confirmed=accounts.aa_confirmed,
        aa_covered=accounts.aa_covered,
    )


def told(rates: Rates) -> list[str]:
    """The rates as sentences, for a report."""
    if not rates.nights:
        return []
    few = rates.nights < NIGHTS
    nights = counted(rates.nights, "night") + " so far"
    candidates, confirmed, filed = (
        f"{rate:.0f}" if few else f"{rate:.1f}" for rate in (rates.candidates, rates.confirmed, rates.filed)
    )
    lines = [
        f"in {nights if few else f'30 nights, by the {nights}'}: {rates.screened:,.0f} series screened, {candidates} "
        f"candidate{'' if candidates == '1' else 's'}, {confirmed} confirmed, {filed} filed or updated"
    ]
    if rates.aa_tries:
        lines.append(
            f"a build against itself, {rates.aa_tries} times: {rates.aa_confirmed} would have been confirmed "
            f"(at most {at_most(rates.aa_confirmed, rates.aa_tries):.1%}), "
            f"{rates.aa_covered / rates.aa_tries:.0%} of the intervals hold 0"
        )
    return lines


def at_most(errors: int, tries: int) -> float:
    """The share that errors have at most, with 95 % certainty: the one-sided limit of Clopper and Pearson, 1934."""
    if errors >= tries:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        few = sum(math.exp(_log_chance(k, tries, middle)) for k in range(errors + 1))
        low, high = (middle, high) if few > _SURE else (low, middle)
    return high


def _log_chance(errors: int, tries: int, share: float) -> float:
    """ln of the binomial probability: of some thousand tries its coefficient alone is no number that a float holds."""
    ways = math.lgamma(tries + 1) - math.lgamma(errors + 1) - math.lgamma(tries - errors + 1)
    return ways + errors * math.log(share) + (tries - errors) * math.log1p(-share)

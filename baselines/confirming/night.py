"""One night, from what it measured to what is filed: the environment, what waits, the new candidates, in this order.
Another machine is asked last, so that it can be one that begins when the first has ended; the first is asked the same
whether there is another or not.

What was filed in the state before is never taken back. Asked again with the same state and a bench that answers the
same, a night comes to the same: a killed one goes on.
"""

from collections.abc import Sequence

from baselines.confirming.against_itself import hold_against_itself
from baselines.confirming.bench import Bench
from baselines.confirming.bridging import look_at_environment
from baselines.confirming.candidates import ask_another_runner, try_candidates
from baselines.confirming.class_wide_build import conclude_build
from baselines.confirming.eras import align_environments, align_newcomers, forget_environments, meet_environments
from baselines.confirming.exact import ExactChange, ask_exact
from baselines.confirming.margins import with_margins
from baselines.confirming.rules import Rules
from baselines.confirming.second_look import ask_the_waiting
from baselines.confirming.seen import Seen
from baselines.confirming.state import ClassState
from baselines.confirming.tonight import Named, Outcome, Tonight

KEPT_FILED = 200


def run_night(
    seen: Seen,
    state: ClassState,
    bench: Bench,
    rules: Rules,
    named: Sequence[Named] = (),
    exact: Sequence[ExactChange] = (),
) -> Outcome:
    """Changes `state`, and returns what came of the night. Raises ValueError for a night that the state knows.

    A class that is young has no levels to be far from; until it has, only what is `named` is measured again.
    """
    if state.last_night is not None and seen.tonight <= state.last_night:
        raise ValueError(f"the night of {seen.tonight} was concluded already: {state.last_night} is the newest")
    rules = with_margins(rules, state)
    tonight = Tonight(seen, state, bench, rules, named)
    _know(tonight)
    state.bucket = min(rules.bucket, state.bucket + rules.pairs_a_night)
    state.accounts.nights += 1
    state.accounts.screened += len(seen.series)
    if not tonight.is_young:
        conclude_build(tonight)
        look_at_environment(tonight)
    ask_exact(tonight, exact)
    ask_the_waiting(tonight)
    confirmed = try_candidates(tonight)
    if not tonight.is_young:
        hold_against_itself(tonight)
    ask_another_runner(tonight, confirmed)
    forget_environments(tonight)
    state.last_night = seen.tonight
    state.filed = state.filed[-KEPT_FILED:]
    state.outcome = tonight.told()
    return tonight.outcome


def _know(tonight: Tonight) -> None:
    """The environments of the first nights, and those of series that came later."""
    nights = len(tonight.seen.nights)
    if tonight.is_young:
        meet_environments(tonight, nights)
    elif not tonight.state.aligned:
        meet_environments(tonight, nights - 1)
        align_environments(tonight, nights - 1)
        tonight.state.aligned = True
        tonight.look()
    if align_newcomers(tonight):
        tonight.look()

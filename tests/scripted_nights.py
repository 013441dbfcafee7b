"""Nights of a class in a store, as a test tells them."""

from night_factory import A, run_of
from scripted_bench import OTHERS, Scripted, values

from baselines.confirming.stored_state import read_state
from baselines.history import add_night
from baselines.policy import load_policy
from baselines.runs import run_prefix, store_run
from baselines.store import open_store
from bot.conclusion import joined_masks, judge
from bot.confirming.closing import confirm_closings
from bot.confirming.confirmation import confirm_night, rules_of
from bot.confirming.report import waiting_masks, with_confirmation
from bot.filing_rules import FilingRules
from bot.github.alert import masks
from bot.github.alerts import apply_report
from bot.github.announcements import announce
from bot.triage.calling_noise import noisy_tests
from torchbenchmark.records import Status

POLICY = load_policy("default")
OK3, CRASH3 = (Status.OK,) * 3, (Status.CRASH,) * 3


class Class:
    """Nights of one class in a store, each concluded as the nightly does it."""

    def __init__(self, folder, file=None):
        self.store, self.alerts, self.day = open_store(str(folder)), (), 0
        self.file, self.closing_rules = file or FilingRules(), None

    def night(self, times, bench, build=None, closing=None):
        every = {**{test: [1.0, 1.001, 0.999] for test in OTHERS}, **times}
        run = run_of(
            self.day,
            {
                test: processes if isinstance(processes, Status | dict) else {"cpu_time": processes}
                for test, processes in every.items()
            },
        )
        if build is not None:
            run = type(run)(
                run.header.model_copy(update={"build": run.header.build.model_copy(update={"id": build})}), run.records
            )
        self.day += 1
        store_run(self.store, run)
        tonight = add_night(self.store, run_prefix(run.header))
        state, _ = read_state(self.store, tonight.suite, tonight.machine_class)
        report = judge(
            self.store,
            tonight,
            POLICY,
            joined_masks(masks(self.alerts, tonight.started), waiting_masks(state)),
            noisy=noisy_tests(self.alerts, tonight.started),
        )
        rules = rules_of(self.file, POLICY)
        outcome = confirm_night(self.store, tonight, report, POLICY, lambda nights: bench, rules=rules)
        report = with_confirmation(report, outcome)
        if closing is not None:
            report = confirm_closings(
                self.store, tonight, report, self.alerts, lambda nights: closing, tonight.started, self.closing_rules
            )
        self.alerts = apply_report(self.alerts, report, now=tonight.started, file=self.file)
        self.alerts = announce(self.alerts, report, self.file)
        return report

    def closed_with(self, rules):
        """A good night, with rules of its own for what is asked before alerts close."""
        self.closing_rules = rules
        return self.night({A: values(1.0, self.day)}, Scripted({}), closing=Scripted({}))

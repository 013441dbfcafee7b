"""`/benchmark profile …`: measure as `/benchmark` does, and say what inside the tests differs."""

from functools import partial

from bot.github.commands.asked import parse_asked
from bot.github.commands.benchmark import request_benchmark
from bot.github.commands.command import Command

USAGE = "`/benchmark profile …`: the same words; also which operators and kernels differ"
COMMAND = Command("benchmark profile", "pull request", (USAGE,), parse_asked, partial(request_benchmark, profile=True))

"""Histories that people bring, in any known format. `read_histories` reads them all."""

from baselines.histories.formats import FORMATS, read_histories
from baselines.histories.history import Better, History, Reading

__all__ = ["FORMATS", "Better", "History", "Reading", "read_histories"]

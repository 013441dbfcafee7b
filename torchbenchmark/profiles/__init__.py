"""What inside a model got slower: two sides profiled by turns, and their difference told by operator and by kernel.

docs/attribution.md describes it. What runs in the build's interpreter is torchbenchmark/worker/channels/operators.py.
"""

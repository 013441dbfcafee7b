"""Two builds compared on one machine by pairs: each pair is two processes, one of either side, measured one right after
the other. `torchbench ab`, confirmation, bisection and `/benchmark` all stand on this package; docs/ab.md describes it.
"""

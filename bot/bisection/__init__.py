"""Which commit of a range made a change: a search that is told of builds and measurements one at a time, and answers
with what to build or measure next, or with a verdict. Pure: who builds, measures and stores is elsewhere.
docs/bisection.md describes it.
"""

"""From suspects to signals: what is measured again, how evidence adds up, and what is the environment's.

The rules are pure; what they want measured they ask of a bench (bench.py), which is this machine or a simulated fleet.
"""

"""The instrument on which a comparison of two builds stands: pure functions on numpy arrays, one method a file.

Which method for which question, what each assumes and how often it errs: docs/statistics.md. Nothing here knows of
tests, channels or builds; arrays come in, plain values go out. Needs numpy and scipy and nothing else of this project.
"""

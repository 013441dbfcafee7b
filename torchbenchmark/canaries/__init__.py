"""Canaries: tests on a frozen build, measured first and last in every shard of a nightly. When they move it was not the
build that changed (DESIGN 6.2). No torch here."""

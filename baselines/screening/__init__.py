"""The screen: level shifts in histories, and which series of a night to look at first. Pure functions over arrays."""

from typing import Literal

WINDOW = 150  # nights that the screen looks at

KnobName = Literal["strict", "default", "sensitive"]  # how much evidence a report needs

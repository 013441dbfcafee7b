"""The screen: level shifts in histories, and which series of a night to look at first. Pure functions over arrays."""

"""Measures again what a night has found, both builds side by side, on the machine that measured the night."""

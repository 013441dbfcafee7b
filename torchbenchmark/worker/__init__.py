"""The half of the harness that runs in the build's interpreter: standard library, torch and numpy only."""

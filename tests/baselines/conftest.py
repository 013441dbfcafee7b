"""Makes tests/night_factory.py importable from here; the detector's tests beside it use it too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

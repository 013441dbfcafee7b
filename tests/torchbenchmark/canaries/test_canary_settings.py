"""`canary:` in a configuration: one build, exactly named, and what is said of mistakes."""

import pytest
from pydantic import ValidationError

from torchbenchmark.canaries.settings import CanarySettings

LOCK = ["numpy==2.4.6", "timm==1.0.31", "transformers==5.24.0"]


def test_a_release_with_its_requirements_or_an_interpreter_is_a_frozen_build():
    released = CanarySettings(build="2.12.0", requirements=LOCK)
    assert (released.build, released.suite) == ("release:torch==2.12.0", "canary")
    assert str(CanarySettings(python="/opt/canary/bin/python").python) == "/opt/canary/bin/python"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "set either `build`, the address of the frozen build, or `python`"),
        ({"build": "2.12.0", "python": "python3", "requirements": LOCK}, "set either `build`"),
        ({"build": "2.12.0"}, "`build` needs `requirements`"),
        ({"build": "2.12.0", "requirements": ["numpy>=2"]}, "does not pin one version"),
        ({"python": "python3", "requirements": LOCK}, "what `python` names is measured as it is"),
        ({"build": "/opt/python", "requirements": LOCK}, "names an interpreter, which belongs under `python`"),
        ({"build": "relase:torch==2.12.0", "requirements": LOCK}, "no provider 'relase'"),
        ({"python": "python3", "lock": "2.12.0"}, "lock"),
    ],
)
def test_a_mistake_is_told(keys, said):
    with pytest.raises(ValidationError) as error:
        CanarySettings(**keys)
    assert said in str(error.value)

"""What becomes an issue, and when, by kind and severity: the key `file` of the configuration."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

When = Literal["confirmed", "persistent", "never"]


class FilingRules(BaseModel):
    """`confirmed`: the night that confirms it. `persistent`: when another runner or night shows it too. `never`: it is
    in the report only."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    failing: When = "confirmed"  # a test that fails since lately
    severe: When = "persistent"  # a regression beyond the policy's limit for a test
    regression: When = "persistent"  # any other
    improvement: When = "never"
    count: Literal["confirmed", "never"] = "never"
    environment: Literal["confirmed", "never"] = "never"

    def files_regression(self, severe: bool) -> bool:
        return (self.severe if severe else self.regression) != "never"

"""From an alert to its culprit: which range of commits to bisect, by which tests, and what the alert is told of it."""

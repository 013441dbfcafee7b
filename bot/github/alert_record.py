"""What an issue keeps of its alert, hidden: enough to go on from if the store has lost it. Who may edit the bot's
issues may write there, so it is read as what a stranger has sent: bounded, validated, and only for its own key."""

import base64
import binascii
import zlib

from pydantic import ValidationError

from bot.github.alert import Alert, AlertNight
from bot.github.issue import Recorded

LONGEST = 20_000  # characters, of the 65,536 that GitHub takes
_MOST_BYTES = 2**20  # unpacked
_ELSEWHERE = {"revision", "attribution", "filed", "issue", "told"}  # in the issue itself, or not worth it
LOST = "*What its nights had shown was lost with the store; the next night that finds something shows it anew.*"


def record_of(alert: Alert) -> str:
    """The record of an alert; empty if even the shortest is too long."""
    ends = _telling(alert)
    for changes in (
        {"nights": ends},
        {"nights": ends, "evidence": LOST},
        {"nights": ends[:1], "evidence": LOST, "intervals": (), "bisected": None},
    ):
        shorter = alert.model_copy(update=changes)
        content = shorter.model_dump_json(by_alias=True, exclude=_ELSEWHERE, exclude_defaults=True).encode()
        record = base64.b64encode(zlib.compress(content, 9)).decode()
        if len(record) <= LONGEST:
            return record
    return ""


def _telling(alert: Alert) -> tuple[AlertNight, ...]:
    """The nights that it was opened in, the first and the last time, and the newest two."""
    last = next((index for index, night in enumerate(alert.nights) if night.started >= alert.opened), 0)
    kept = sorted({0, last, *range(max(0, len(alert.nights) - 2), len(alert.nights))})
    return tuple(alert.nights[index] for index in kept)


def alert_in(recorded: Recorded) -> Alert | None:
    """The alert that an issue keeps; None if that is none of this key."""
    try:
        packed = base64.b64decode(recorded.record, validate=True)
        content = zlib.decompressobj().decompress(packed, _MOST_BYTES)
        alert = Alert.model_validate_json(content)
    except (binascii.Error, zlib.error, ValidationError, ValueError):
        return None
    if alert.key != recorded.key:
        return None
    where = recorded.where if recorded.where.startswith(("https://", "http://")) else ""
    return alert.model_copy(update={"revision": recorded.revision, "issue": where, "filed": alert.opened})

"""The curve of pauses: how long sessions that go on wait before their next turn."""

__all__ = ["Pauses", "pause_exceeds"]

#: ``(seconds, P(pause > seconds))``, rising in seconds; empty while none was seen.
Pauses = tuple[tuple[float, float], ...]


def pause_exceeds(pauses: Pauses, seconds: float) -> float:
    """Return P(pause > seconds), read off a step curve; 1 before its first step."""
    share = 1.0
    for upto, left in pauses:
        if upto > seconds:
            break
        share = left
    return share

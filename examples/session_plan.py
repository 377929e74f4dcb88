"""What a session of a generated tree will be like, decided before it is written."""

import math
from dataclasses import dataclass
from enum import StrEnum

from examples.transcript_lines import Style

__all__ = ["Incident", "SessionPlan"]


class Incident(StrEnum):
    """What one turn of a session shows besides plain work."""

    NONE = "none"
    SUB_AGENT = "sub_agent"
    BACKGROUND_AGENT = "background_agent"
    AUTO_COMPACTION = "auto_compaction"
    MANUAL_COMPACTION = "manual_compaction"
    API_RETRY = "api_retry"
    OUT_OF_ORDER = "out_of_order"
    QUEUED_COMMAND = "queued_command"
    LOCAL_COMMAND = "local_command"
    SYNTHETIC = "synthetic"
    INTERRUPTED_TEXT = "interrupted_text"
    INTERRUPTED_TOOL = "interrupted_tool"
    FAILED = "failed"
    IN_FLIGHT = "in_flight"


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What a session will be like.

    Parameters
    ----------
    style : Style
        The harness's version.
    folder : str
        The encoded working folder under ``projects/``.
    start_ms : int
        Epoch milliseconds of the first line.
    incidents : tuple of Incident
        One a turn, in order; ``IN_FLIGHT`` ends the session.
    max_bytes : float, default inf
        The session begins no further turn once its own file is that large.
    mean_calls : float, default 7
        Mean tool calls of a turn that makes any.
    growth_tokens : float, default 1500
        Mean tokens of a tool result.
    body_chars : int, default 300
        Mean characters of a tool result.
    """

    style: Style
    folder: str
    start_ms: int
    incidents: tuple[Incident, ...]
    max_bytes: float = math.inf
    mean_calls: float = 7.0
    growth_tokens: float = 1500.0
    body_chars: int = 300

"""What a compaction does to messages; each strategy quotes what it costs."""

from strategies.cost_aware import cost_aware, cost_aware_turn
from strategies.registry import STRATEGIES, strategy
from strategies.result import Result
from strategies.situation import Situation
from strategies.summary import Summarizer, SummaryReply, SummaryRequest
from strategies.with_logging import with_logging

__all__ = [
    "STRATEGIES",
    "Result",
    "Situation",
    "Summarizer",
    "SummaryReply",
    "SummaryRequest",
    "cost_aware",
    "cost_aware_turn",
    "strategy",
    "with_logging",
]

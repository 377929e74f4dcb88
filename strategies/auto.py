"""Strategy `auto`: past a token threshold the transcript is saved, then all of it is summarized."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from policy.prices import Prices
from strategies.conversation import Conversation
from strategies.cost_quote import Quote, nothing_to_do
from strategies.result import Result, unchanged
from strategies.safe_split import clean_tail
from strategies.settings import at_least, check_types
from strategies.situation import Situation, context_tokens_of
from strategies.strategy import DEFAULT, Messages, refusal, seen
from strategies.summary import (
    Summarizer,
    SummaryModel,
    quote_of_summary,
    summarized,
    summarizer_of,
    summary_worth_asking,
)
from strategies.transcript import Now, utc_now, write_transcript

__all__ = ["Auto", "save_and_summarize"]


@dataclass(frozen=True, slots=True)
class Auto:
    """Summarizes everything but system messages, the last prompt and calls still open.

    Parameters
    ----------
    model : callable or Summarizer
        Who writes the summary.
    threshold_tokens : int
        Context from which on it acts, prefix included; default 50,000.
    transcripts : Path or str
        Folder for the full transcripts, written before anything is asked; secrets are masked in
        them. Default ``.transcripts``.
    now : callable
        Tells the time that names a transcript.

    Raises
    ------
    InputError
        The threshold is negative, or the model can't be called.
    """

    name: ClassVar[str] = "auto"
    model: Summarizer | SummaryModel
    threshold_tokens: int = 50_000
    transcripts: Path | str = ".transcripts"
    now: Now = utc_now

    def __post_init__(self) -> None:
        at_least(0, threshold_tokens=self.threshold_tokens)
        summarizer_of(self.model)
        check_types(self)

    @property
    def summarizer(self) -> Summarizer:
        """Who writes the summary, and how it is asked."""
        return summarizer_of(self.model)

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Save the transcript, then summarize."""
        conversation = seen(messages, situation)
        refused = refusal(conversation)
        if refused:
            return refused
        now = context_tokens_of(conversation, situation)
        if now <= self.threshold_tokens and not situation.force:
            reason = f"{now} tokens are within the threshold of {self.threshold_tokens}"
            return unchanged(conversation, reason)
        return save_and_summarize(conversation, self.summarizer, Path(self.transcripts), self.now)

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return the price of the summary call and of caching the summary."""
        conversation = seen(messages, situation)
        now = situation.sent(conversation.tokens())
        if now <= self.threshold_tokens and not situation.force:
            return nothing_to_do(now)
        cut = clean_tail(conversation)
        if cut is None:
            return nothing_to_do(now)
        return quote_of_summary(conversation, cut, self.summarizer, prices, situation)


def save_and_summarize(
    conversation: Conversation, summarizer: Summarizer, folder: Path, now: Now, focus: str = ""
) -> Result:
    """Write the transcript, and only then ask for the summary of everything before open calls."""
    cut = clean_tail(conversation)
    if cut is None:
        return unchanged(conversation, "no clean boundary before the open calls")
    if not summary_worth_asking(conversation, cut):
        return unchanged(conversation, "nothing new to summarize")
    try:
        write_transcript(conversation, folder, now)
    except OSError as error:
        told = f"{error.filename or folder}: {error.strerror or error}"
        reason = f"the transcript can't be written, so nothing is cut: {told}"
        return unchanged(conversation, reason, failed=True)
    return summarized(conversation, cut, summarizer, focus)

"""Who writes the lab's summaries: nobody but the conversation itself, or a provider's model."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from compactuary.errors import InputError
from experiment.sdk import sdk_of
from policy.prices import Prices
from strategies.extract import extract
from strategies.summary import Summarizer, SummaryModel, SummaryReply, SummaryRequest

__all__ = ["SummarizerName", "summarizer_named"]

SummarizerName: TypeAlias = Literal["extract", "anthropic", "openai"]

#: More than the largest summaries seen; an answer that is cut off there is no summary.
_MOST_OUTPUT_TOKENS = 16_000


def summarizer_named(
    name: SummarizerName, model: str | None, prices: Prices | None = None
) -> Summarizer:
    """Return who writes summaries.

    Parameters
    ----------
    name : {'extract', 'anthropic', 'openai'}
        'extract' asks nobody; the others ask a provider, with the key that
        its variable of the environment holds.
    model : str or None
        Which of the provider's models; with 'extract' whom quotes and questions name.
    prices : Prices, optional
        Of that model, where it is another one than the agent's.

    Raises
    ------
    InputError
        A provider is named, but no model, or its key is not set.
    MissingExtraError
        The provider's SDK is not installed.
    """
    if name == "extract":
        return Summarizer(extract, prices=prices, model_name=model)
    if model is None:
        remedy = "Give --summary-model, or --model where it is the agent's own."
        raise InputError("needs a model", where="--summarizer", value=name, remedy=remedy)
    sdk = sdk_of(name, "--summarizer")
    ask: Callable[[Any, str], SummaryModel] = {"anthropic": _anthropic, "openai": _openai}[name]
    return Summarizer(ask(sdk, model), prices=prices, model_name=model)


def _anthropic(sdk: Any, model: str) -> SummaryModel:
    def ask(request: SummaryRequest) -> SummaryReply:
        with sdk.Anthropic() as client:
            answer = client.messages.create(
                model=model,
                max_tokens=_MOST_OUTPUT_TOKENS,
                messages=[{"role": "user", "content": request.prompt}],
            )
        _check_whole(cut_off=answer.stop_reason == "max_tokens")
        texts = [block.text for block in answer.content if block.type == "text"]
        calls = sum(block.type == "tool_use" for block in answer.content)
        return SummaryReply("\n".join(texts), answer.usage.model_dump(exclude_none=True), calls)

    return ask


def _openai(sdk: Any, model: str) -> SummaryModel:
    def ask(request: SummaryRequest) -> SummaryReply:
        with sdk.OpenAI() as client:
            answer = client.responses.create(
                model=model,
                max_output_tokens=_MOST_OUTPUT_TOKENS,
                input=request.prompt,
            )
        _check_whole(cut_off=answer.status == "incomplete")
        calls = sum(str(item.type).endswith("_call") for item in answer.output)
        usage = None if answer.usage is None else answer.usage.model_dump(exclude_none=True)
        return SummaryReply(answer.output_text, usage, calls)

    return ask


def _check_whole(*, cut_off: bool) -> None:
    if cut_off:
        raise ValueError(f"the answer was cut off at {_MOST_OUTPUT_TOKENS:,} tokens")

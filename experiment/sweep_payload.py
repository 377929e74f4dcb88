"""A sweep as plain JSON values, with what it takes for granted."""

from typing import Any

from experiment.graph import MOST_CALLS, ReportRun
from experiment.providers import SIMULATED
from experiment.quality import FACTS, STATED_AGAIN
from experiment.recall import CLEAR_TOKENS, FADE_TOKENS
from experiment.sweep import Sweep

__all__ = ["ONLY_THE_SHAPE", "assumptions", "run_payload", "sweep_payload"]

ONLY_THE_SHAPE = (
    "The model is simulated: what is meant is the shape of the curves, not one of their figures."
)


def sweep_payload(found: Sweep, provider: str, model: str) -> dict[str, Any]:
    """Return a sweep for JSON.

    Parameters
    ----------
    found : Sweep
    provider, model : str
        Who answered; for the simulated model, whose prices count.
    """
    plan = found.plan
    return {
        "provider": provider,
        "model": model,
        "simulated": provider == SIMULATED,
        "seed": plan.seed,
        "documents": list(plan.documents),
        "threshold_tokens": plan.threshold_tokens,
        "arms": [run_payload(one) for one in found.runs],
        "thresholds": [
            {"threshold_tokens": one.setting.threshold_tokens, **run_payload(one)}
            for one in found.thresholds
        ],
        "facts": FACTS,
        "stated_again": STATED_AGAIN,
        "assumptions": assumptions(found, provider, model),
    }


def run_payload(run: ReportRun) -> dict[str, Any]:
    """Return one run for JSON: the figures, then each read and statement that was one too many."""
    quality, bill = run.quality, run.bill
    return {
        "arm": run.setting.arm,
        "documents": run.setting.documents,
        "quality": round(quality.score, 6),
        "repeated_reads": len(quality.read_again),
        "contradictions": len(quality.contradictions),
        "facts_survived": quality.facts_survived,
        "reads": quality.reads,
        "cost": round(bill.cost, 1),
        "summary_cost": round(bill.summary_cost, 1),
        "dollars": None if bill.dollars is None else round(bill.dollars, 6),
        "requests": bill.requests,
        "summary_calls": bill.summary_calls,
        "largest_context": bill.largest_context,
        "read_again": [
            {"document": one.document, "section": one.section, "first_section": one.first_section}
            for one in quality.read_again
        ],
        "contradicted": [
            {
                "quantity": one.quantity,
                "section": one.section,
                "value": one.value,
                "first_section": one.first_section,
                "first_value": one.first_value,
            }
            for one in quality.contradictions
        ],
    }


def assumptions(found: Sweep, provider: str, model: str) -> list[str]:
    """Return what a reader has to know to judge a sweep, a sentence or two each."""
    prices = found.prices
    priced = (
        f"Prices: {model}, {prices.source}, {prices.as_of}: r {prices.cache_read:g}, "
        f"w {prices.cache_write_5m:g}, o {prices.output:g}."
    )
    shared = (
        (
            f"Quality: ½ facts of {FACTS} in the closing section, ¼ statements that agree of "
            f"{STATED_AGAIN} repeated ones, ¼ reads that were new."
        ),
        (
            f"Every arm compacts past {found.plan.threshold_tokens:,} tokens; a section is given "
            f"up after {MOST_CALLS} requests."
        ),
        priced,
    )
    if provider != SIMULATED:
        return [
            f"{provider}'s {model} answered, and its usage is billed; another run differs.",
            *shared,
        ]
    return [ONLY_THE_SHAPE, _RECALL, _SUMMARIES, *shared, _SIZES]


_RECALL = (
    f"It overlooks nothing in a context of up to {CLEAR_TOKENS:,} tokens; beyond, a thing d of T "
    f"tokens back is found with probability exp(−(T − {CLEAR_TOKENS:,}) / {FADE_TOKENS:,} · d / "
    "T), and always within the current turn."
)
_SUMMARIES = (
    "Its summary holds what the request for it names, and otherwise the topic. The framework's own "
    "prompts name nothing, so that its node keeps as little as naive does."
)
_SIZES = (
    "Tokens are characters ÷ 4; the cache is marked behind system prompt and last message, and "
    "nothing in it expires."
)

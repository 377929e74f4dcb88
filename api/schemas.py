"""Bodies of requests. Answers are the policy's and the ledger's own values."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from ledger.usage import CONVENTIONS

__all__ = [
    "FORMS",
    "CompactionBody",
    "EndBody",
    "FinishedTurn",
    "FinishedTurns",
    "Known",
    "ManyTurns",
    "Name",
    "Recorded",
    "RequestBody",
    "ShouldCompact",
    "ShouldCompactQuery",
    "ThresholdsQuery",
    "ToolCall",
    "TurnBody",
]


def _storable(name: str) -> str:
    """Refuse the one character that PostgreSQL can't hold; lone surrogates never get here."""
    if "\0" in name:
        raise PydanticCustomError("unstorable", "must hold no NUL character")
    return name


Name = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_storable)]
Count = Annotated[int, Field(ge=0, le=10**9)]
#: Calls of one turn; a life table has a row for each.
Calls = Annotated[int, Field(ge=0, le=10**6)]
Amount = Annotated[float, Field(ge=0, le=10**12, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
#: The rules that can be asked for; a test holds them to the policy's own.
Rule = Literal[
    "occupancy",
    "break-even",
    "reorder",
    "renewal",
    "idle",
    "eoq",
    "fixed-remaining",
    "lindy",
    "median-remaining",
    "never",
]
Stamp = Annotated[str, Field(max_length=40, examples=["2026-02-11T21:18:41.543Z"])]


class _Body(BaseModel):
    # JSON has numbers of its own: neither "12" nor true is one.
    model_config = ConfigDict(extra="forbid", strict=True)


class Compacting(BaseModel):
    """What a caller may say of a compaction; what it leaves out is learned, or assumed."""

    model_config = ConfigDict(extra="forbid")

    unit: Literal["tool_calls", "requests"] = "tool_calls"
    provider: Name | None = None
    kind: Literal["summary", "separate", "clear", "server_side"] = Field(
        "summary",
        description="What would make the new context: the same model behind the cached prefix, "
        "another model or prompt, no call, or the provider.",
    )
    strategy: Name | None = Field(
        None, description="Whose learned sizes count; that of the kind if left out."
    )
    summary_model: Name | None = Field(
        None, description="Who summarizes where that is another model; needed for 'separate'."
    )
    context_after_tokens: Count | None = Field(
        None, description="Context after a compaction, X′; learned, or assumed, if left out."
    )
    prefix_tokens: Count | None = Field(
        None, description="What of it stays cached, p′; learned, or assumed, if left out."
    )
    summary_output_tokens: Count | None = Field(
        None, description="Output of the summary call, S + R; learned, or assumed, if left out."
    )
    growth_tokens: Amount | None = Field(
        None, description="Growth of the context per request; learned, or assumed, if left out."
    )
    rework_tokens: Count | None = Field(
        None, description="What the agent reads in again, L; 0 until learned."
    )
    quality_cost: Amount = Field(0.0, description="Charge per compaction, Q, in base tokens.")
    miss_probability: Probability | None = Field(
        None, description="That a request misses a warm cache, q; 0 until learned."
    )
    resume_probability: Probability | None = Field(
        None, description="That the session goes on after a turn, q_s; 0 until learned."
    )
    requests_after_turn: Amount | None = Field(
        None, description="Further requests after this turn, ν; 0 until learned."
    )
    ttl: Literal["5m", "1h", "12h"] = Field(
        "5m", description="For how long the agent has its context cached."
    )
    window_tokens: Annotated[int, Field(gt=0, le=10**9)] | None = Field(
        None, description="What the model can hold; from the price book if left out."
    )
    rule: Rule | None = Field(
        None, description="Which rule decides; the best whose inputs are known, if left out."
    )


class ShouldCompactQuery(Compacting):
    """What an agent knows before its next request."""

    role: Name = Field(description="The agent's role, as the ledger knows it.", examples=["main"])
    calls: Count = Field(description="Calls made so far in this turn, in `unit`.", examples=[12])
    context_tokens: Count | None = Field(
        None,
        description="Context now. May be left out with both cost and saving.",
        examples=[150000],
    )
    model: Name | None = Field(
        None,
        description="Whose prices to use. May be left out with weights, or cost and saving.",
        examples=["claude-opus-4-8"],
    )
    at: Literal["call", "turn_end", "idle", "resume"] = Field(
        "call",
        description="Before a request of a running turn, at the end of a turn, while idle, or "
        "before the first request after a pause.",
    )
    idle_seconds: Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)] | None = Field(
        None, description="How long the session has been idle; needed at 'idle'."
    )
    cost: Amount | None = Field(None, description="C in base tokens, instead of the computed one.")
    saving: Annotated[float, Field(gt=0, le=10**12, allow_inf_nan=False)] | None = Field(
        None, description="s in base tokens per remaining request, instead of the computed one."
    )
    useless_compactions: Count = Field(
        0, description="Compactions in a row that shrank this context by less than 5%."
    )
    turn_id: Name | None = None
    session_id: Name | None = None
    quotes: bool = Field(False, description="Add what every kind of compaction would cost.")
    explain: bool = Field(False, description="Add every term of C, s and m.")


class ThresholdsQuery(Compacting):
    """What thresholds shall be compiled for, beside the role."""

    model: Name = Field(description="Whose prices to use.", examples=["claude-opus-4-8"])
    context_tokens: Annotated[int, Field(gt=0, le=10**9)] = Field(
        100_000, description="Whose price band counts, where prices depend on the context."
    )


class ShouldCompact(ShouldCompactQuery):
    """What an agent knows before its next request, with weights of its own if it has them."""

    model_config = ConfigDict(strict=True)

    weights: dict[str, float] | None = Field(
        None,
        description="Weights relative to the input price, instead of the model's.",
        examples=[{"cache_read": 0.1, "cache_write": 1.25, "output": 5}],
    )


class TurnBody(_Body):
    """A turn that begins. It may be sent again, also with more of its fields known."""

    role: Name
    session_id: Name
    model: Name | None = None
    provider: Name | None = None
    started_at: Stamp | None = None
    entry_calls: Calls = Field(0, description="Calls made before observation began.")
    parent_turn_id: Name | None = None


class ToolCall(_Body):
    """A tool call that an answer asked for."""

    id: Name
    name: Name


#: Names of the forms in which a body may come; a problem's field leaves them out.
FORMS = frozenset({"form:calls", "form:count", "form:list", "form:object"})


def _form_of_calls(given: object) -> str:
    return "form:calls" if isinstance(given, list) else "form:count"


def _form_of_turns(given: object) -> str:
    return "form:list" if isinstance(given, list) else "form:object"


class RequestBody(_Body):
    """One model call, with the tool calls its answer asked for."""

    request_id: Name = Field(description="Unique in the ledger, such as the provider's message id.")
    usage: dict[str, Any] = Field(
        description="The provider's usage object as it came, or uncached, cache_read, "
        "cache_write (or cache_write_5m, cache_write_1h, …), output, reasoning.",
        examples=[{"uncached": 3, "cache_read": 82720, "cache_write": 1450, "output": 441}],
    )
    convention: Name | None = Field(
        None,
        description="How the usage object counts; needed only where its fields leave it open.",
        json_schema_extra={"enum": [*CONVENTIONS, None]},
    )
    tool_calls: Annotated[
        Annotated[list[ToolCall], Tag("form:calls")]
        | Annotated[int, Field(ge=0, le=10**4), Tag("form:count")],
        Discriminator(_form_of_calls),
    ] = Field(default_factory=list, description="The calls themselves, or only how many.")
    at: Stamp | None = None
    model: Name | None = None
    kind: Literal["agent", "compaction"] = "agent"


class EndBody(_Body):
    """How a turn came to its end."""

    status: Literal["ended", "cut"]
    reason: Name | None = None
    at: Stamp | None = None
    tool_calls: Calls | None = Field(None, description="Calls in all, if requests were not sent.")


#: Finished turns in one body.
MOST_TURNS = 10_000


class FinishedTurn(_Body):
    """A turn that is over, as one row."""

    turn_id: Name
    role: Name
    tool_calls: Calls
    requests: Calls | None = None
    status: Literal["ended", "cut"] = "ended"
    session_id: Name | None = None
    model: Name | None = None
    provider: Name | None = None
    started_at: Stamp | None = None
    ended_at: Stamp | None = None
    entry_calls: Calls = 0
    parent_turn_id: Name | None = None
    reason: Name | None = None


class FinishedTurns(_Body):
    """Many finished turns."""

    turns: list[FinishedTurn] = Field(max_length=MOST_TURNS)


ManyTurns = Annotated[
    Annotated[list[FinishedTurn], Field(max_length=MOST_TURNS), Tag("form:list")]
    | Annotated[FinishedTurns, Tag("form:object")],
    Discriminator(_form_of_turns),
]


class CompactionBody(_Body):
    """A compaction that took place."""

    compaction_id: Name
    session_id: Name
    turn_id: Name | None = None
    at: Stamp | None = None
    trigger: Name | None = None
    strategy: Name = "summary"
    context_before: Count
    context_after: Count | None = None
    calls_before: Calls | None = Field(
        None, description="Tool calls the turn had made; from the ledger if left out."
    )
    requests_before: Calls | None = None


class Recorded(BaseModel):
    """What a write added; all zero where it had been sent before."""

    turns: int
    requests: int
    compactions: int


class Known(BaseModel):
    """A turn as the ledger has it now."""

    turn_id: str
    status: str
    tool_calls: int
    requests: int | None

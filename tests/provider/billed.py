"""C as the local server bills it, beside C as a strategy quotes it."""

from typing import NamedTuple

from ledger.usage import Usage, usage_from
from policy.prices import Prices
from strategies.formats.recognise import see
from strategies.situation import Situation
from strategies.summary import Summarizer, SummaryReply
from strategies.tokens import CODING_RATIO, TokenRatio
from strategies.told_counts import ToldCounts
from tests.provider.anthropic_messages import Messages, request_blocks
from tests.provider.real_sessions import PROSE
from tests.provider.tokenizer import MESSAGE_TOKENS, count

READ, WRITE, OUTPUT = 0.1, 1.25, 5.0
PRICES = Prices("m", "caller", READ, WRITE, 2.0, OUTPUT, {}, None, "caller", None)
CACHED = {"cache_control": {"type": "ephemeral"}}
SYSTEM = [{"type": "text", "text": "You mend programs. " * 2_000, **CACHED}]
PREFIX_TOKENS = sum(block.tokens for block in request_blocks({"system": SYSTEM, "messages": []})[0])
SUMMARY_TOKENS = 1_000
SUMMARY = (PROSE * 100)[: int(SUMMARY_TOKENS * len(PROSE) / count(PROSE))]
#: How much is known of tokens: nothing, what coding is like, one ratio a conversation, or what each
#: request told.
KNOWN = ("characters / 4", "coding ratio", "one ratio", "told counts")


class Compared(NamedTuple):
    """C as it was quoted, and as it was billed."""

    quoted: float
    billed: float

    @property
    def error(self):
        """Relative error of the quote."""
        return self.quoted / self.billed - 1


def base_tokens(usage):
    """Return what a request cost."""
    read, written = READ * usage.cache_read, WRITE * usage.cache_write
    return usage.uncached + read + written + OUTPUT * usage.output


def compared(make, messages, views):
    """Return C quoted and billed of a strategy at the end of messages, by knowledge of tokens.

    `make` takes a summarizer and returns the strategy. Empty where it changes nothing.
    """
    account = Messages(lambda body: [{"type": "text", "text": SUMMARY}])
    calls, bills, found = [], {}, {}
    chosen = make(_summarizer(calls, account))
    for name, (view, situation) in views.items():
        # A budget cuts where the counts say; all others do the same whatever is known.
        key = name if chosen.name == "token_budget" else ""
        if key not in bills:
            result = chosen.compact(view, situation)
            bills[key] = _billed(messages, result.messages, calls) if result.changed else None
        if bills[key] is not None:
            found[name] = Compared(chosen.quote(view, PRICES, situation).cost, bills[key])
    return found


def _billed(messages, compacted, calls):
    """Return C: the compaction's own calls, and what is cached again.

    The server first gets the request before, which fills its cache, then the one after, with a
    breakpoint before the first change: what it costs more than a warm read is caching again.
    """
    after = [_listed(message) for message in compacted]
    same = next(k for k, each in enumerate(after) if each is not messages[k]) - 1
    account = Messages(lambda body: [])
    account.respond(_body(messages, same))
    usage = usage_from(account.respond(_body(after, same))["usage"])
    again = base_tokens(usage) - READ * usage.context_tokens
    return sum(map(base_tokens, calls)) + again


def _summarizer(calls, account):
    """Return a summarizer whose call goes to the server by itself, uncached."""

    def ask(request):
        blocks = [{"type": "text", "text": request.prompt}]
        messages = [{"role": "user", "content": blocks}]
        response = account.respond({"model": "m", "max_tokens": 1, "messages": messages})
        calls.append(usage_from(response["usage"]))
        return SummaryReply(response["content"][0]["text"], response["usage"])

    return Summarizer(ask, summary_tokens=SUMMARY_TOKENS)


def _listed(message):
    content = message["content"]
    if isinstance(content, list):
        return message
    return {**message, "content": [{"type": "text", "text": content}]}


def _body(messages, same):
    """Return a request: marked are the system prompt, a message before a change, and the end."""
    marked = list(messages)
    for place in {same, len(messages) - 1} - {-1}:
        *blocks, last = marked[place]["content"]
        marked[place] = {**marked[place], "content": [*blocks, {**last, **CACHED}]}
    return {"model": "m", "max_tokens": 1, "system": SYSTEM, "messages": marked}


def views_of(messages):
    """Return the messages as each knowledge of tokens sees them, learned from earlier requests.

    Before each response there was a request with all that stands before it.
    """
    view = see(messages, "anthropic")
    ratio, counts, total, guessed = TokenRatio(), ToldCounts(PREFIX_TOKENS), PREFIX_TOKENS, 0
    for number, (message, seen) in enumerate(zip(messages, view.messages, strict=True)):
        size = sum(block.tokens for block in request_blocks({"messages": [message]})[0])
        if message["role"] == "assistant":
            usage = Usage(uncached=total, output=size - MESSAGE_TOKENS)
            ratio = ratio.learned(guessed, usage, PREFIX_TOKENS)
            counts = counts.learned(number, usage, answer_messages=1)
        total += size
        guessed += seen.tokens
    plain = Situation(PREFIX_TOKENS, force=True)
    learned = Situation(PREFIX_TOKENS, ratio.value, force=True)
    coding = Situation(PREFIX_TOKENS, CODING_RATIO, force=True)
    told = ((view, plain), (view, coding), (view, learned), counts.seen(view, plain))
    return dict(zip(KNOWN, told, strict=True))

"""The closed forms of cost and saving against a ledger that bills every token of every request.

The ledger keeps a real prefix cache: entries at breakpoints, each with an expiry that a hit
renews. It knows nothing of C, s or their terms.
"""

import random
from collections import Counter
from dataclasses import dataclass
from itertools import count

from policy.cache_state import CacheState
from policy.cost import compaction_terms, sliding_window
from policy.prices import Prices
from policy.sizes import Sizes
from policy.summary_call import NO_CALL, observed_call, separate_call, shared_prefix_call

SCENARIOS = 40_000
KINDS = ("shared", "separate", "clear", "slide", "server")
MOMENTS = ("warm", "before_pause", "after_pause")
SECONDS = {"5m": 300, "1h": 3_600, "12h": 43_200}
FRESH = count()


@dataclass(frozen=True)
class Rates:
    """Dollars per million tokens of one model: up to its cliff, and `factor` as much beyond."""

    dollars: float
    read: float
    writes: dict
    output: float
    cliff: float = float("inf")
    factor: float = 1.0

    def level(self, total):
        return self.dollars * (self.factor if total > self.cliff else 1.0)

    def at(self, total):
        dollars = {"input": self.level(total)}
        writes = (self.writes["5m"], self.writes["1h"])
        return Prices(
            "m", "p", self.read, *writes, self.output, dollars, None, "a list", None,
            cache_write_12h=self.writes["12h"],
        )  # fmt: skip


class CacheLedger:
    """One conversation's cache at a provider, and what its requests have cost."""

    def __init__(self, rates, ttl, missed, *, head):
        self.rates, self.ttl, self.missed, self.head = rates, ttl, missed, head
        self.expiry, self.now, self.bill, self.last = {}, 0.0, 0.0, None

    def request(self, blocks, *, written=True, output=0, certain=False):
        """Bill blocks of (identity, tokens), expecting a hit or a miss of the whole cache."""
        ends, key, size = [], (), 0
        for identity, tokens in blocks:
            key, size = (*key, identity), size + tokens
            ends.append((key, size))
        alive = [end for end in ends if self.expiry.get(end[0], -1) >= self.now]
        read = alive[-1][1] if alive else 0
        level, missed = self.rates.level(size), 0.0 if certain else self.missed
        weight = self.rates.writes[self.ttl] if written else 1.0
        hit = self.rates.read * read + weight * (size - read)
        self.bill += level * ((1 - missed) * hit + missed * weight * size)
        self.bill += level * self.rates.output * output
        marked = [ends[0], ends[-1]] if self.head else [ends[-1]]
        for end, _ in [*alive, *(marked if written else ())]:
            self.expiry[end] = self.now + SECONDS[self.ttl]
        self.last = (read, size - read)


@dataclass
class Case:
    kind: str
    state: CacheState
    rates: Rates
    other: Rates
    blocks: list
    kept: int
    growth: list
    summary: int
    tail: int
    instruction: int
    output: int
    rework: int
    quality: float
    markers: bool
    head: bool
    pause: float


def draw(rng):
    ttl = rng.choice(("5m", "1h", "12h"))
    cliff = rng.random() < 0.2
    fee = rng.random() < 0.6
    writes = {"5m": 1.25, "1h": 2.0, "12h": 2.5} if fee else dict.fromkeys(SECONDS, 1.0)
    read = rng.choice((0.5, 0.25, 0.1, 0.05, 0.025))
    sizes = [rng.randint(1_000, 40_000) for _ in range(4)]
    kind = rng.choice(KINDS)
    tail, summary = rng.randint(0, 9_000), rng.randint(100, 9_000)
    rework = rng.choice((0, rng.randint(1, 9_000))) if kind != "slide" else 0
    edge = float("inf")
    if cliff:
        sizes[2] += 60_000
        edge = 100_000 if sum(sizes) > 100_000 else sum(sizes) - 1
        cut = sizes[0] + (sizes[1] if kind == "clear" else 0)
        edge = max(edge, cut + summary + sizes[3] + tail + rework)
    missed = rng.choice((0.0, 0.0, rng.random()))
    return Case(
        kind=kind,
        state=CacheState(rng.choice(MOMENTS), ttl, missed),
        rates=Rates(rng.uniform(0.1, 10), read, writes, rng.uniform(3, 8), edge, rng.uniform(1, 5)),
        other=Rates(rng.uniform(0.1, 10), 0.1, writes, rng.uniform(3, 8)),
        blocks=[(next(FRESH), size) for size in sizes],
        kept=rng.randint(1, 4),
        growth=[0 if cliff else rng.randint(0, 3_000) for _ in range(rng.randint(1, 4))],
        summary=summary,
        tail=tail,
        instruction=rng.randint(0, 1_000),
        output=rng.randint(100, 8_000),
        rework=rework,
        quality=rng.choice((0.0, rng.uniform(0, 9_000))),
        markers=rng.random() < 0.5,
        head=rng.random() < 0.7,
        pause=SECONDS[ttl] * rng.uniform(1.01, 9),
    )


def history(case):
    """The requests so far, each one block longer, so that every block's end was cached."""
    ledger = CacheLedger(
        case.rates, case.state.ttl, case.state.miss_probability, head=case.head
    )  # fmt: skip
    for end in range(2, 5):
        ledger.request(case.blocks[:end])
        ledger.now += SECONDS[case.state.ttl] * 0.3
    ledger.bill = 0.0
    return ledger


def go_on(ledger, case, context, *, slides=False):
    """Bill the remaining requests, each with its new tokens at the end."""
    window = context
    for grown in case.growth:
        if slides:
            context = [window[0], (next(FRESH), window[1][1])]
        context = [*context, (next(FRESH), grown)]
        ledger.request(context)
        ledger.now += SECONDS[case.state.ttl] * 0.4
    return ledger.bill


def waiting(case):
    ledger = history(case)
    if case.state.moment != "warm":
        ledger.now += case.pause
    return go_on(ledger, case, case.blocks)


def new_context(case):
    """The context after, and how much of it is a prefix of the old one that was cached."""
    first, second, _, last = case.blocks
    cleared = (next(FRESH), case.summary)
    if case.kind == "clear":
        return [first, second, cleared, last], first[1] + second[1]
    if case.kind == "slide":
        return [first, (next(FRESH), case.summary + case.tail)], first[1] if case.head else 0
    return [first, cleared, (next(FRESH), case.tail)], first[1] if case.head else 0


def sizes_of(case):
    """The token counts of a case, and the context after it."""
    after, prefix = new_context(case)
    found = sum(tokens for _, tokens in case.blocks[: case.kept])
    sizes = Sizes(
        context_tokens=sum(tokens for _, tokens in case.blocks),
        context_after_tokens=sum(tokens for _, tokens in after),
        prefix_tokens=prefix,
        summary_output_tokens=case.output,
        instruction_tokens=case.instruction,
        cached_tokens=found if case.kept > 1 or case.head else 0,
    )
    return sizes, after


def make(ledger, case, sizes, prices):
    """Bill the call that makes the new context; return what the closed form says of it."""
    state, markers = case.state, case.markers
    asked = (next(FRESH), case.instruction)
    if case.kind == "separate":
        sent = sizes.context_tokens - sizes.prefix_tokens
        elsewhere = CacheLedger(case.other, state.ttl, 0.0, head=False)
        elsewhere.request([(next(FRESH), sent), asked], written=markers, output=case.output)
        ledger.bill += elsewhere.bill
        return separate_call(sizes, prices, case.other.at(sent), state, markers=markers)
    if case.kind in {"clear", "slide"}:
        return NO_CALL
    # The call may render the context otherwise from some block on: it then finds less of it.
    shared, others = case.blocks[: case.kept], case.blocks[case.kept :]
    blocks = [*shared, *((next(FRESH), tokens) for _, tokens in others), asked]
    seen = case.kind == "server"
    ledger.request(blocks, written=markers, output=case.output, certain=seen)
    if not seen:
        return shared_prefix_call(sizes, prices, state, markers=markers)
    read, rest = ledger.last
    sent = {f"written_{state.ttl}_tokens" if markers else "uncached_tokens": rest}
    return observed_call(prices, read_tokens=read, output_tokens=case.output, **sent)


def compacting(case):
    """The bill with a compaction, and n·s − C for the same case, in base tokens."""
    ledger = history(case)
    if case.state.moment == "after_pause":
        ledger.now += case.pause
    sizes, after = sizes_of(case)
    prices = case.rates.at(sizes.context_tokens)
    call = make(ledger, case, sizes, prices)
    if case.state.moment == "before_pause":
        ledger.now += case.pause
    level = case.rates.level(sizes.context_tokens)
    later = case.rates.at(sizes.context_after_tokens + case.rework)
    requests = len(case.growth)
    if case.kind == "slide":
        terms = sliding_window(sizes, prices, later, case.state)
        read = case.rates.writes[case.state.ttl] * case.state.miss_probability
        read += case.rates.read * (1 - case.state.miss_probability)
        # What only the unchanged context keeps of earlier growth, which the closed form leaves out.
        kept = sum(sum(case.growth[:k]) for k in range(requests))
        return go_on(ledger, case, after, slides=True), level * (terms.net(requests) + read * kept)
    terms = compaction_terms(
        call, sizes, prices, later, case.state,
        rework_tokens=case.rework, quality_cost=case.quality,
    )  # fmt: skip
    context = [*after, (next(FRESH), case.rework)]
    bill = go_on(ledger, case, context) + level * case.quality
    return bill, level * terms.net(requests)


def test_the_closed_forms_are_the_difference_of_two_bills():
    rng = random.Random(20_261_130)
    cells, cliffs, wrong = Counter(), 0, []
    for _ in range(SCENARIOS):
        case = draw(rng)
        if case.kind == "server" and case.state.ttl == "12h":
            continue
        without = waiting(case)
        with_one, net = compacting(case)
        if abs(without - with_one - net) > 1e-9 * (abs(without) + abs(with_one)):
            wrong.append((case, without - with_one, net))
        cells[case.kind, case.state.moment, case.state.miss_probability > 0] += 1
        cliffs += case.rates.cliff < float("inf")
    assert not wrong, f"{len(wrong)} mismatches, the first: {wrong[0]}"
    assert cells.total() >= 30_000
    assert len(cells) == len(KINDS) * len(MOMENTS) * 2
    assert min(cells.values()) > 500
    assert cliffs > 5_000

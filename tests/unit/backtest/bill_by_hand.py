"""One unit billed request by request in plain Python, and its cheapest plan by trying them all."""

from itertools import product

NOTHING, BEFORE, PAUSE = "nothing", "before", "pause"


def bill(requests, choices, *, prices, sizes):
    """Bill a unit; None where a context at the limit was not compacted, or too small a one was.

    `requests` are (growth, cold, can pause) of all but the first, `choices` one a request.
    """
    read, write, call, limit = prices
    first, prefix, after, rework = sizes
    context, total = first, write * first
    for (growth, cold, _), choice in zip(requests, choices, strict=True):
        if choice == NOTHING:
            if context >= limit and context > after:
                return None
            total += write * (context + growth) if cold else read * context + write * growth
            context += growth
            continue
        if context <= after:
            return None
        total += call + context * (1.0 if cold and choice == BEFORE else read)
        new = growth + rework
        if cold:
            total += write * (after + new)
        else:
            total += read * prefix + write * (after - prefix + new)
        context = after + new
    return total


def cheapest(requests, *, prices, sizes):
    """Try every plan."""
    options = [
        (NOTHING, BEFORE, PAUSE) if can_pause else (NOTHING, BEFORE) for _, _, can_pause in requests
    ]
    bills = (bill(requests, chosen, prices=prices, sizes=sizes) for chosen in product(*options))
    return min(cost for cost in bills if cost is not None)

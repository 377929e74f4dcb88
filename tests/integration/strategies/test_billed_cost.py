"""C quoted against C billed by the local cache server, on real sessions.

`benchmarks.quoted_cost` prints the whole distribution.
"""

from collections import defaultdict

import numpy as np
import pytest

from benchmarks.quoted_cost import sampled
from policy.cost import compaction_terms
from policy.sizes import Sizes
from policy.summary_call import NO_CALL
from strategies.registry import strategy
from tests.conftest import needs_shared_data
from tests.provider.anthropic_messages import request_blocks
from tests.provider.billed import PREFIX_TOKENS, PRICES, compared, views_of
from tests.provider.real_sessions import SESSIONS, messages_of
from tests.unit.strategies.provider_rules import problems

pytestmark = [pytest.mark.disable_socket, needs_shared_data]

#: A few from the small to the large; the benchmark takes all.
SAMPLE = SESSIONS[130:-60:48]


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """Return the sizes of the relative errors of all strategies, by knowledge of tokens."""
    found = defaultdict(list)
    for (_, known), each in sampled(SAMPLE, tmp_path_factory.mktemp("transcripts")).items():
        found[known] += [abs(one.error) for one in each]
    return found


def test_what_each_request_told_makes_quotes_right(errors):
    told = errors["told counts"]
    assert len(told) >= 20
    assert np.median(told) <= 0.02
    assert np.quantile(told, 0.9) <= 0.05


def test_one_ratio_a_conversation_is_within_a_tenth_usually(errors):
    assert np.median(errors["one ratio"]) <= 0.1
    assert np.median(errors["coding ratio"]) <= 0.1


def test_characters_alone_are_too_few_of_code(errors):
    """The reason for all of it: code has fewer characters a token than prose."""
    assert 0.15 <= np.median(errors["characters / 4"]) <= 0.4


def test_the_bill_is_the_model_s_formula_on_the_server_s_counts():
    """Where nothing is estimated, quote and bill are the same number."""
    messages = messages_of(SESSIONS[-60])
    assert problems("anthropic", messages) == []
    found = compared(lambda _: strategy("micro"), messages, views_of(messages))
    result = strategy("micro").compact(messages)
    first = result.rewritten[0]

    def counted(some):
        return PREFIX_TOKENS + sum(b.tokens for b in request_blocks({"messages": some})[0])

    sizes = Sizes(counted(messages), counted(result.messages), counted(messages[:first]), 0, 0)
    terms = compaction_terms(NO_CALL, sizes, PRICES)
    assert found["told counts"].billed == pytest.approx(terms.cost, abs=10)

"""Counts: characters ÷ 4, and what usage teaches about them."""

import pytest

from compactuary.errors import InputError
from ledger.usage import Usage
from strategies.tokens import TokenRatio, estimated_tokens

pytestmark = pytest.mark.disable_socket


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2)])
def test_four_characters_are_a_token(text, tokens):
    assert estimated_tokens(text) == tokens


def test_the_ratio_is_of_sums():
    ratio = TokenRatio()
    assert ratio.value == 1
    ratio = ratio.learned(1000, Usage(uncached=300, cache_read=900), prefix_tokens=100)
    assert ratio.value == pytest.approx(1.1)
    ratio = ratio.learned(3000, Usage(cache_write_5m=3100), prefix_tokens=100)
    assert ratio.value == pytest.approx((1100 + 3000) / 4000)


@pytest.mark.parametrize(("guessed", "told", "where"), [(0, 9, "guessed"), (9, 5, "usage")])
def test_a_request_without_messages_teaches_nothing(guessed, told, where):
    with pytest.raises(InputError, match=where):
        TokenRatio().learned(guessed, Usage(uncached=told), prefix_tokens=5)


def test_another_tokenizer_is_learned_within_two_percent():
    """A tokenizer of one token per word and mark; requests grow as a conversation does."""
    words = "the parser reads main.go, fails at line 120: unexpected token; fixed in parse() "

    def counted(text):
        return sum(1 + piece.count(".") + piece.count(",") for piece in text.split())

    ratio, text = TokenRatio(), ""
    for number in range(10):
        text += words * (number + 1)
        ratio = ratio.learned(estimated_tokens(text), Usage(uncached=counted(text)))
    longer = text + words * 50
    guess = estimated_tokens(longer)
    assert abs(guess / counted(longer) - 1) > 0.1
    assert guess * ratio.value == pytest.approx(counted(longer), rel=0.02)

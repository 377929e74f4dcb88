"""Counts as usage told them, by hand."""

import pytest

from compactuary.errors import InputError
from ledger.usage import Usage
from strategies.registry import strategy
from strategies.situation import Situation
from strategies.told_counts import ToldCounts

pytestmark = pytest.mark.disable_socket


def user(text):
    return {"role": "user", "content": text}


def told(counts, messages, **settings):
    view, situation = counts.seen(messages, Situation(**settings))
    return [situation.scaled(message.tokens) for message in view.messages], situation


def test_without_usage_characters_count():
    counts, situation = told(ToldCounts(), [user("x" * 400)])
    assert counts == [100]
    assert situation == Situation()


def test_what_came_between_two_requests_counts_as_their_difference():
    messages = [user("x" * 400), user("y" * 400), user("z" * 400), user("w" * 400)]
    counts = ToldCounts(1_000).learned(1, Usage(uncached=1_080))
    counts = counts.learned(3, Usage(cache_read=1_080, cache_write_5m=320))
    # 80, then 320 for two alike; the last was never sent: 400 of 300 guessed, 133.
    assert told(counts, messages)[0] == [80, 160, 160, 133]
    view, situation = counts.seen(messages)
    assert situation.sent(view.tokens()) == pytest.approx(1_000 + 400 + 133, abs=1)


def test_an_answer_counts_as_its_output_did():
    messages = [user("x" * 400), {"role": "assistant", "content": "y" * 400}, user("z" * 400)]
    counts = ToldCounts().learned(1, Usage(uncached=100, output=50), answer_messages=1)
    counts = counts.learned(3, Usage(uncached=400))
    # Counts are whole numbers of the ratio's units.
    assert told(counts, messages)[0] == pytest.approx([100, 50, 250], abs=1)


def test_a_context_that_shrank_takes_back_what_was_told():
    counts = ToldCounts().learned(1, Usage(uncached=100)).learned(2, Usage(uncached=300))
    counts = counts.learned(4, Usage(uncached=200))
    assert counts.marks == ((1, 100), (4, 200))


def test_after_a_compaction_only_what_it_left_counts():
    counts = ToldCounts().learned(1, Usage(uncached=100)).learned(2, Usage(uncached=300))
    assert counts.kept_until(1).marks == ((1, 100),)
    # And marks beyond the messages at hand are not looked at.
    assert told(counts, [user("x" * 400)])[0] == [100]


def test_frames_are_told_apart_from_texts():
    """Each message counts 9, and each 4 characters count 2: small and large texts show both."""
    sizes = [4, 400, 40, 2_000, 4, 800, 12, 160, 2_400, 20, 1_200, 4]
    messages, counts, total = [], ToldCounts(), 0
    for number, size in enumerate(sizes, 1):
        messages.append(user("x" * size))
        total += 9 + size // 2
        counts = counts.learned(number, Usage(uncached=total))
    view, situation = counts.seen(messages)
    assert view.frame_tokens * situation.token_ratio == pytest.approx(9)
    # Of the message with 2,000 characters, half of them are 500 tokens.
    assert view.tokens_held(3, 1_000) * situation.token_ratio == pytest.approx(500, rel=0.01)


def test_a_quote_is_made_of_what_was_told(prices):
    messages = [user("x" * 400), {"role": "assistant", "content": "y" * 400}, user("z" * 400)]
    counts = ToldCounts(1_000).learned(2, Usage(uncached=1_200))
    counts = counts.learned(3, Usage(uncached=1_700))
    view, situation = counts.seen(messages)
    quote = strategy("sliding_window", keep_last=1).quote(view, prices, situation)
    assert quote.context_tokens == 1_700
    assert quote.context_after_tokens == pytest.approx(1_500, abs=1)
    assert quote.cost == pytest.approx(1.15 * 500, abs=2)


def test_a_view_that_was_counted_is_compacted_as_the_messages_are():
    use = {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "file\n" * 300}
    messages = [user("list"), {"role": "assistant", "content": [use]}, user([result]), user("so")]
    counts = ToldCounts().learned(2, Usage(uncached=30)).learned(4, Usage(uncached=830))
    view, situation = counts.seen(messages)
    chosen = strategy("micro", keep=0)
    done = chosen.compact(view, situation)
    assert done.messages == chosen.compact(messages).messages
    assert done.messages_after_tokens < done.messages_tokens


@pytest.mark.parametrize(("messages", "used", "where"), [(0, 2_000, "messages"), (2, 9, "usage")])
def test_a_request_without_messages_teaches_nothing(messages, used, where):
    with pytest.raises(InputError, match=where):
        ToldCounts(1_000).learned(messages, Usage(uncached=used))

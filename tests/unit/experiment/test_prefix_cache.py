import pytest

from experiment.prefix_cache import Block, PrefixCache


def blocks(text, tokens=100):
    return [Block(letter.encode(), tokens) for letter in text]


def classes(usage):
    return usage.uncached, usage.cache_read, usage.cache_write, usage.output


def test_an_automatic_cache_reads_the_longest_prefix_and_writes_for_free():
    cache = PrefixCache()
    assert classes(cache.billed(blocks("abc"), 7)) == (300, 0, 0, 7)
    assert classes(cache.billed(blocks("abcde"), 1)) == (200, 300, 0, 1)
    assert classes(cache.billed(blocks("abxde"), 1)) == (300, 200, 0, 1)
    assert classes(cache.billed(blocks("bcd"), 1)) == (300, 0, 0, 1)


def test_with_marks_only_what_lies_before_one_is_stored():
    cache = PrefixCache()
    assert classes(cache.billed(blocks("abcd"), 1, marks=[1, 3])) == (100, 0, 300, 1)
    assert classes(cache.billed(blocks("abcdef"), 1, marks=[1, 6])) == (0, 300, 300, 1)
    # The second block changed, as after a compaction: the first mark is what is left.
    assert classes(cache.billed(blocks("axcdef"), 1, marks=[1, 6])) == (0, 100, 500, 1)


@pytest.mark.parametrize(("added", "read"), [(20, 100), (21, 0)])
def test_an_entry_is_found_twenty_blocks_before_a_mark_and_no_further(added, read):
    cache = PrefixCache()
    cache.billed(blocks("a"), 1, marks=[1])
    usage = cache.billed(blocks("a" + "b" * added), 1, marks=[1 + added])
    assert usage.cache_read == read


def test_a_small_prefix_is_not_cached():
    cache = PrefixCache(least_tokens=300)
    assert classes(cache.billed(blocks("ab"), 1, marks=[2])) == (200, 0, 0, 1)
    assert classes(cache.billed(blocks("abc"), 1, marks=[3])) == (0, 0, 300, 1)
    assert classes(cache.billed(blocks("abcd"), 1, marks=[4])) == (0, 300, 100, 1)


def test_blocks_are_told_apart_by_where_they_end():
    cache = PrefixCache()
    cache.billed([Block(b"ab", 1), Block(b"c", 1)], 1)
    assert cache.billed([Block(b"a", 1), Block(b"bc", 1)], 1).cache_read == 0

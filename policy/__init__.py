"""Prices, weights, cost and saving of a compaction, the rules and their guards: the decision."""

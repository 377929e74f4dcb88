"""Replay of compaction rules on whole sequences of real requests, in base tokens."""

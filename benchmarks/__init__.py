"""Timings of the hot paths, as ratios of two things measured in one run."""

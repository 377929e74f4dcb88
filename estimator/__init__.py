"""Histograms of turns, life tables and mean residual life."""

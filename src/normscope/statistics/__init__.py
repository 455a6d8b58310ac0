"""Estimates, tests, contrasts of crossed designs. Knows nothing of models."""

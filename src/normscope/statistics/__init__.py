"""Estimates, tests, contrasts of crossed designs; outcomes, retraining and choice of settings."""

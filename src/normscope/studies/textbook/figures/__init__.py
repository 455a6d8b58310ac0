"""Figures of the study textbook."""

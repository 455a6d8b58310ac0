"""Statements of the literature, asked of small Transformers."""

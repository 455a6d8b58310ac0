"""Measurements of a model or of a stream of tokens. Imports no study."""

"""Drawings of the figures in ``figures.yaml``."""

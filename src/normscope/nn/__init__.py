"""Layers and the Transformer, built from factors: what is trained. Knows no study."""

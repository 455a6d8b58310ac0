"""Pretrained models: from where they are named to their norms, in one pass."""

"""Residual gain of pretrained models: measured in one pass, and compared with published values."""

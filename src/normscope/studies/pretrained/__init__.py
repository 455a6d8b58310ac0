"""Residual gain of pretrained models: measured in one pass, beside what was published."""

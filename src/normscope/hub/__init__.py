"""Pretrained models: find and load them, and measure their residual stream."""

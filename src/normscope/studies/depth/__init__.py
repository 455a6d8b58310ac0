"""Signals and gradients by depth: with and without residual connections, by placement and norm."""

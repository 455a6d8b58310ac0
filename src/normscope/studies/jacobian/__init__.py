"""The backward pass of a norm, taken apart: what it removes, and what it costs to leave that in."""

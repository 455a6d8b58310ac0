"""The figure of a card."""

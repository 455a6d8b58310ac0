"""Validation loss and residual gain, arm by arm, on the corpus."""

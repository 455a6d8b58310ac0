"""The card of a norm: a fair, small comparison with the norms that everybody uses."""

"""Which directions of a token a norm removes, on the way there and on the way back."""

"""Every norm at its own learning rate, on many texts."""

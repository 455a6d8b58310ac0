"""LayerNorm and BatchNorm as a tutorial builds them, measured."""

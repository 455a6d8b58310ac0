"""One trained model: its recipe, steps, checkpoints, files. Knows no study."""

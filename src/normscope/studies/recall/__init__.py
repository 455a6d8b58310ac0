"""The decisive test: one small block, two tasks, every norm."""

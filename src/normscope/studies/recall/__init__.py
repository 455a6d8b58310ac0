"""The recall test: one small block, two tasks, every norm."""

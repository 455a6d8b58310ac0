"""The costs of jobs. Nothing here imports torch or pandas."""

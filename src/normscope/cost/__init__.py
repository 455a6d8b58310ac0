"""The costs of jobs, and the remaining time of a run. Nothing here imports torch or pandas."""

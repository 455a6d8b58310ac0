"""What a configuration costs, and how long a run of its jobs takes. No torch."""

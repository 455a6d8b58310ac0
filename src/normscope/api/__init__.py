"""The Python interface: tables, trained models, and measurements of a user's model."""

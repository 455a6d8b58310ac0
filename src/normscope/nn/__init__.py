"""The Transformer and its layers, built from factors. Imports no study."""

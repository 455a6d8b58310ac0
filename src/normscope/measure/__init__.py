"""What is measured of a model or of a token stream. Knows no study."""

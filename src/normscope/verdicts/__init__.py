"""The ledger of claims: every statement as published, and what its test finds."""

"""The ledger of claims: every statement as published, beside what its test finds here."""

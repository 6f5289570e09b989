"""The ledger's schema, one migration a file."""

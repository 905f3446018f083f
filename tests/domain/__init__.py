"""The rules, tested as rules: no store, no clock, no network."""

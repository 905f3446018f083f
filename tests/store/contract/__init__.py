"""One suite for every store: each sentence of `foliot.store.base` has its test here."""

"""Fuzzing, guided by coverage: what is read of others must come out right or be refused, whatever the bytes are."""

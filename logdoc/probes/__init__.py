"""Asks the machine for facts, read-only and with time limits; knows no rule, and judges only by `doctor`'s table."""

"""The experiments that draw from a known target, and hold the draws against exact truth."""

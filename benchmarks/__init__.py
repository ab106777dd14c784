"""Benchmarks: one file, one question, a ratio against a named peer."""

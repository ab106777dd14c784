"""The papers' tables, one file a paper."""

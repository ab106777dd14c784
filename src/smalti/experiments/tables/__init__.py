"""The papers' tables, one file a table or a few that belong together."""

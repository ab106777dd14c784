"""Building blocks of networks that know nothing of codes."""

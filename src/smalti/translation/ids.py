"""The ids of tokens that are no words: who makes a vocabulary leaves these free."""

PAD, EOS, UNKNOWN, BEGIN = 0, 1, 2, 3
# What a translation never holds: what marks its end, its beginning, and nothing.
MARKS = frozenset({PAD, EOS, BEGIN})

"""What can be trained and measured: each kind turns settings and a seed into numbers."""

from smalti.experiments.kinds.base import Kind, Measured, kind_named, kinds

__all__ = ["Kind", "Measured", "kind_named", "kinds"]

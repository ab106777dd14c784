"""These tests train on scikit-learn's digits."""

from __future__ import annotations

import pytest

pytest.importorskip("accelerate")
pytest.importorskip("sklearn")

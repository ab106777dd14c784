"""smalti: learned discrete codes.

Importing this package is light; what needs torch is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smalti import quantizers
    from smalti.quantizers import build
    from smalti.quantizers.saving import load, save

__version__ = "0.1.0"
__all__ = ["__version__", "build", "load", "quantizers", "save"]

_HOMES = {
    "build": "smalti.quantizers",
    "load": "smalti.quantizers.saving",
    "save": "smalti.quantizers.saving",
}


def __getattr__(name: str) -> Any:
    if name == "quantizers":
        return import_module("smalti.quantizers")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'smalti' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

"""smalti: learned discrete codes.

Importing this package is light; what needs torch is loaded when it is first used. From then
on transformers opens models with compressed tables, whichever of the two is imported first.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from smalti.hub.registration import ensure_registered

if TYPE_CHECKING:
    from smalti import analysis, embeddings, hub, quantizers, report
    from smalti.embeddings import build_compressor, build_table
    from smalti.embeddings.saving import load_table, save_table
    from smalti.hub import (
        SmaltiConfig,
        compress,
        export_model,
        load_model,
        open_model,
        replace_table,
        save_model,
        tune_table,
    )
    from smalti.quantizers import build
    from smalti.quantizers.saving import load, save

__version__ = "0.1.0"
__all__ = [
    "SmaltiConfig",
    "__version__",
    "analysis",
    "build",
    "build_compressor",
    "build_table",
    "compress",
    "embeddings",
    "export_model",
    "hub",
    "load",
    "load_model",
    "load_table",
    "open_model",
    "quantizers",
    "replace_table",
    "report",
    "save",
    "save_model",
    "save_table",
    "tune_table",
]

_PACKAGES = {"analysis", "embeddings", "hub", "quantizers", "report"}
_HOMES = {
    "SmaltiConfig": "smalti.hub",
    "build": "smalti.quantizers",
    "build_compressor": "smalti.embeddings",
    "build_table": "smalti.embeddings",
    "compress": "smalti.hub",
    "export_model": "smalti.hub",
    "load": "smalti.quantizers.saving",
    "load_model": "smalti.hub",
    "load_table": "smalti.embeddings.saving",
    "open_model": "smalti.hub",
    "replace_table": "smalti.hub",
    "save": "smalti.quantizers.saving",
    "save_model": "smalti.hub",
    "save_table": "smalti.embeddings.saving",
    "tune_table": "smalti.hub",
}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"smalti.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'smalti' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


ensure_registered()

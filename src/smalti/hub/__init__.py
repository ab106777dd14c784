"""Hugging Face models: find their tables, replace them, save, load, export.

Importing this package is light; transformers is imported when it is first needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smalti.hub.card import model_card
    from smalti.hub.compressing import Compressed, compress
    from smalti.hub.exporting import export_model
    from smalti.hub.groups import Group, find_group
    from smalti.hub.loading import load_model, read_info
    from smalti.hub.opening import Opened, open_model
    from smalti.hub.plugin import SmaltiConfig
    from smalti.hub.replacing import replace_table
    from smalti.hub.saving import save_model
    from smalti.hub.tuning import Tuned, tune_table

_HOMES = {
    "Compressed": "compressing",
    "Group": "groups",
    "Opened": "opening",
    "SmaltiConfig": "plugin",
    "Tuned": "tuning",
    "compress": "compressing",
    "export_model": "exporting",
    "find_group": "groups",
    "load_model": "loading",
    "model_card": "card",
    "open_model": "opening",
    "read_info": "loading",
    "replace_table": "replacing",
    "save_model": "saving",
    "tune_table": "tuning",
}
__all__ = [
    "Compressed",
    "Group",
    "Opened",
    "SmaltiConfig",
    "Tuned",
    "compress",
    "export_model",
    "find_group",
    "load_model",
    "model_card",
    "open_model",
    "read_info",
    "replace_table",
    "save_model",
    "tune_table",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'smalti.hub' has no attribute {name!r}")
    # The one place that says which extra is missing.
    import_module("smalti.hub.library").transformers_library()
    return getattr(import_module(f"smalti.hub.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__

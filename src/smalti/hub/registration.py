"""Makes transformers know smalti's models, without importing it or much else.

When transformers is loaded already, the plug-in is registered at once. Otherwise a finder
waits on ``sys.meta_path`` for the module in which transformers keeps its quantization methods,
and registers the plug-in right after that module was run.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

AWAITED = "transformers.quantizers.auto"


class _Waiting:
    """Finds the awaited module as others do, with a loader that registers the plug-in."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != AWAITED:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None and spec.loader is not None:
                wrapped: Any = _Registering(spec.loader, self)
                spec.loader = wrapped
                return spec
        return None


class _Registering:
    """Runs a module as its own loader does, then registers the plug-in."""

    def __init__(self, own: Any, finder: _Waiting) -> None:
        self.own = own
        self.finder = finder

    def create_module(self, spec: ModuleSpec) -> Any:
        return self.own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # From here on the module looks as if nobody had waited for it.
        module.__loader__ = self.own
        if module.__spec__ is not None:
            module.__spec__.loader = self.own
        self.own.exec_module(module)
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        _register()


def ensure_registered() -> None:
    """Register the plug-in now, or as soon as transformers is imported."""
    if AWAITED not in sys.modules and not any(isinstance(f, _Waiting) for f in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())
    # Asked again: another thread may have begun to import it before the finder was there.
    if AWAITED in sys.modules:
        import_module(AWAITED)  # waits until that thread is done
        _register()


def _register() -> None:
    try:
        # The plug-in registers itself at its end; it may be what imports transformers here.
        import_module("smalti.hub.plugin")
    except Exception as error:  # whatever it is: an import of transformers must not fail by us
        warnings.warn(
            "smalti could not register with transformers, so models that it wrote will open "
            f"with random tables; it needs transformers 5 ({type(error).__name__}: {error})",
            RuntimeWarning,
            stacklevel=2,
        )

"""The quantization method that transformers calls when a checkpoint with a table is opened.

Imported while transformers itself is being imported (see registration.py): nothing heavy,
and nothing of transformers' models, may be imported at the top of this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from smalti.errors import ArtifactError, ConfigError, require

if TYPE_CHECKING:
    import torch

    from smalti.embeddings import Compressor
    from smalti.hub.library import Model
    from smalti.hub.modules import TableEmbedding

METHOD = "smalti"
FORMAT_VERSION = 1
# The tie group of the input embedding; the only one so far.
INPUT = "input"

# Through import_module: type checkers need not read all of transformers.
_auto = import_module("transformers.quantizers.auto")
_base = import_module("transformers.quantizers.base")
_configs = import_module("transformers.utils.quantization_config")


# Silenced because type checkers don't know the base class: see the imports.
class SmaltiConfig(_configs.QuantizationConfigMixin):  # type: ignore[misc,name-defined]
    """The ``quantization_config`` of a model with a compressed table.

    Args:
        tables: The spec of the table of each tie group.
        compressor: How to make the table, when a dense checkpoint is compressed while it is
            loaded.
        untied_head: Whether the output layer has a weight of its own although the model's
            class would tie it.
        places: Where the table stood when the model was made; for people only.
        origin: Where the model came from, in free words and numbers.
        format_version: Of this format.
        **others: Not used; later versions may write more.
    """

    def __init__(
        self,
        tables: Mapping[str, Any] | None = None,
        compressor: Mapping[str, Any] | str | Compressor | None = None,
        untied_head: bool = False,
        places: Mapping[str, Any] | None = None,
        origin: Mapping[str, Any] | None = None,
        format_version: int = FORMAT_VERSION,
        **others: Any,
    ) -> None:
        del others
        self.quant_method = METHOD
        self.format_version = format_version
        self.tables = dict(tables or {})
        # Everything here is written to config.json.
        spec = getattr(compressor, "spec", None)
        self.compressor = spec() if spec is not None else compressor
        self.untied_head = untied_head
        self.places = dict(places or {})
        self.origin = dict(origin or {})

    def get(self, name: str, default: Any = None) -> Any:
        """As a dictionary: transformers asks so, when it is given a loaded model's config."""
        return getattr(self, name, default)


# Silenced because type checkers don't know the base class: see the imports.
class SmaltiQuantizer(_base.HfQuantizer):  # type: ignore[misc,name-defined]
    """Puts the table into a model that is being loaded, and takes it out again."""

    requires_calibration = False
    quantization_config: SmaltiConfig

    def validate_environment(self, *args: Any, **kwargs: Any) -> None:
        """Refuse what can't be read before anything is loaded."""
        del args, kwargs
        config = self.quantization_config
        if self.pre_quantized:
            check_config(config)
        else:
            self._compressor()

    def _compressor(self) -> Compressor:
        from smalti.embeddings import build_compressor  # noqa: PLC0415  (light import)

        spec = self.quantization_config.compressor
        if spec is None:
            raise ConfigError(
                "to compress while loading, say how: "
                "SmaltiConfig(compressor={'compressor': 'product', ...})"
            )
        return build_compressor(spec)

    def _process_model_before_weight_loading(self, model: Model, **kwargs: Any) -> Model:
        from smalti.hub.filling import put_in_skeleton  # noqa: PLC0415  (light import)

        del kwargs
        if self.pre_quantized:
            put_in_skeleton(model, self.quantization_config)
            # transformers loads quantized checkpoints without looking at shapes and types.
            self._expected = {
                name: (tuple(parameter.shape), parameter.dtype)
                for name, parameter in model.named_parameters()
            }
        return model

    def _process_model_after_weight_loading(self, model: Model, **kwargs: Any) -> Model:
        from smalti.hub.filling import compress, fill_skeleton, settle  # noqa: PLC0415

        del kwargs
        if self.pre_quantized:
            fill_skeleton(model, self.quantization_config)
            settle(model, self._expected)
            del self._expected
        else:
            compress(model, self._compressor(), self.quantization_config)
        return model

    def dequantize(self, model: Model, dtype: torch.dtype | None = None) -> Model:
        """The dense model; by default in the type that the table gives."""
        owner: TableEmbedding = model.get_input_embeddings()
        dense: Model = super().dequantize(model, dtype or owner.table.output_dtype)
        return dense

    def _dequantize(self, model: Model, dtype: torch.dtype) -> Model:
        from smalti.hub.swapping import take_out  # noqa: PLC0415  (light import)

        take_out(model, dtype)
        return model

    def is_serializable(self, safe_serialization: bool | None = None) -> bool:
        """Saved as safetensors, like any model."""
        del safe_serialization
        return True

    @property
    def is_trainable(self) -> bool:
        """Codebooks and kept rows are ordinary parameters."""
        return True

    @property
    def is_qat_trainable(self) -> bool:
        """Trainer asks this before it trains a quantized model without adapters."""
        return True

    @property
    def is_compileable(self) -> bool:
        """A look-up has no branch on a value."""
        return True


def check_config(config: SmaltiConfig) -> None:
    """Refuse a configuration that this version can't read."""
    require(
        config.format_version == FORMAT_VERSION,
        f"the model has format version {config.format_version!r}, this smalti reads "
        f"{FORMAT_VERSION}; load it with the smalti that wrote it",
        ArtifactError,
    )
    require(
        isinstance(config.tables.get(INPUT), Mapping),
        f"config.json has no spec of the table {INPUT!r} in its quantization_config",
        ArtifactError,
    )


def _register() -> None:
    # Only what is missing: transformers refuses a name that it knows.
    if METHOD not in _auto.AUTO_QUANTIZATION_CONFIG_MAPPING:
        _auto.register_quantization_config(METHOD)(SmaltiConfig)
    if METHOD not in _auto.AUTO_QUANTIZER_MAPPING:
        _auto.register_quantizer(METHOD)(SmaltiQuantizer)


_register()

"""Replaces the embedding table of a loaded model."""

from __future__ import annotations

import json
from typing import Any

from smalti.embeddings import CompressedEmbedding
from smalti.errors import ConfigError, require
from smalti.hub.filling import describe
from smalti.hub.groups import find_group
from smalti.hub.library import Model
from smalti.hub.plugin import METHOD, SmaltiConfig, SmaltiQuantizer
from smalti.hub.swapping import put_in


def replace_table(model: Model, table: CompressedEmbedding, **origin: Any) -> Model:
    """Put a fitted table into a loaded model, wherever its own table is used.

    The model is changed and returned. It can be saved, trained and copied as before;
    ``model.dequantize()`` makes it dense again.

    Args:
        model: A transformers model.
        table: What ``Compressor.fit`` made of the model's table.
        **origin: What else shall stand in the saved configuration, as JSON data.
    """
    group = find_group(model)
    other = getattr(model.config, "quantization_config", None)
    require(
        other is None,
        f"{type(model).__name__} is quantized by another method; compress the original model",
    )
    try:
        json.dumps(origin)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"expected JSON data about the origin: {error}") from error
    config = SmaltiConfig(origin=origin)
    describe(model, group, table, config)
    put_in(model, group, table)
    # What transformers sets itself when it loads such a model.
    model.config.quantization_config = config
    model.hf_quantizer = SmaltiQuantizer(config, pre_quantized=True)
    model.is_quantized = True
    model.quantization_method = METHOD
    return model

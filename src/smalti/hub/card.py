"""The README.md of a saved model: how to load it, what it is, what was lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from smalti.errors import require
from smalti.hub.groups import input_embedding
from smalti.hub.library import Model
from smalti.hub.modules import TableEmbedding

FLOAT32 = 4

COMPRESSED = """\
---
library_name: {library}
tags:
- smalti
- embedding-compression
{base}---

# {title}

The embedding table of this model is stored as learned codes, made with
smalti: **{small} instead of {dense}** as float32,
{times} times smaller. The rest of the model is unchanged.

## How to load it

Import `smalti` first; then every ordinary loader opens it:

```python
import smalti
from transformers import {opener}

model = {opener}.from_pretrained("path/to/this/model")
```

> **Warning.** Without `import smalti`, transformers does **not** stop: it prints "Unknown
> quantization type, got smalti" and goes on with a **random embedding table**. Whatever such a
> model answers is noise.

`smalti.load_model("path/to/this/model")` also checks that no file is damaged. For programs that
can't import smalti, write an ordinary dense checkpoint once:

```
smalti export path/to/this/model -o dense
```

## What was lost

{figures}

## The table

| what | value |
|---|---|
| rows x width | {rows} x {dim} |
| stands at | {places} |
| codes | {codes} bytes |
| codebooks | {codebooks} bytes |
| kept rows | {kept} bytes |
| other | {other} bytes |

```json
{spec}
```
"""

DENSE = """\
# {title}

An ordinary dense checkpoint, exported by smalti from a model
with a compressed embedding table. It loads without smalti; its table is what the codes decode to.
"""


def model_card(
    model: Model, figures: Mapping[str, Any] | None = None, *, title: str | None = None
) -> str:
    """The text of README.md for a model with a compressed table.

    Args:
        model: A model that went through ``replace_table``.
        figures: What was measured, such as ``{"STS-B dev, before": 86.7, "after": 86.4}``.
        title: The heading; by default the model's own name.
    """
    owner = input_embedding(model)
    require(
        isinstance(owner, TableEmbedding),
        f"{type(model).__name__} has no compressed table: call replace_table first",
    )
    config = model.config.quantization_config
    table, size = owner.table, owner.table.size()
    dense = table.rows * table.dim * FLOAT32
    name = str(config.origin.get("name") or "")
    heading = title or f"{name or type(model).__name__} with a compressed embedding table"
    return COMPRESSED.format(
        library="transformers",
        base=f"base_model: {name}\n" if "/" in name and not name.startswith((".", "/")) else "",
        title=heading,
        opener=type(model).__name__,
        small=readable(size.total),
        dense=readable(dense),
        times=f"{dense / size.total:.1f}",
        figures=_figures(figures),
        rows=table.rows,
        dim=table.dim,
        places=", ".join(f"`{place}`" for group in config.places.values() for place in group),
        codes=size.codes,
        codebooks=size.codebooks,
        kept=size.kept,
        other=size.other,
        spec=json.dumps(table.spec(), indent=2),
    )


def readable(size: int) -> str:
    """Bytes for people.

    Example:
        >>> readable(46_881_792)
        '46.9 MB'
    """
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size} bytes"


def _figures(figures: Mapping[str, Any] | None) -> str:
    if not figures:
        return "Nobody measured it. Measure it on your own task before you rely on this model."
    rows = "\n".join(f"| {name} | {value} |" for name, value in figures.items())
    return f"| what | value |\n|---|---|\n{rows}"

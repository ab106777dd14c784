"""Heat maps: a picture of shades inside a drawing, however many cells there are."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from smalti.analysis.figures import HeatMap
from smalti.analysis.png import png
from smalti.report.drawing.scales import shown

# The shade of the largest number; smaller ones let more of the paper through, so that the same
# picture serves on white and on black.
SHADE = (13, 148, 136)
# Few cells are drawn as high as wide.
FEW = 24


def draw_heat_map(figure: HeatMap, key: str) -> Markup:
    """Cells with names around them; ``key`` is where the page keeps the numbers."""
    rows, columns = len(figure.rows), len(figure.columns)
    largest = _largest(figure)
    picture = base64.b64encode(png(_pixels(figure, largest))).decode("ascii")
    square = columns <= FEW
    share = rows / columns if square else min(1.0, max(0.22, rows / columns * 1.6))
    image = (
        f'<svg class="cells" viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(figure.title)}"><image width="{columns}" height="{rows}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{picture}"/>'
        '<rect class="pointed" width="1" height="1" visibility="hidden"/></svg>'
    )
    many = rows > FEW
    side = "".join(f"<span>{escape(name)}</span>" for name in _ends(figure.rows, many))
    foot = "".join(f"<span>{escape(n)}</span>" for n in _ends(figure.columns, columns > FEW))
    spread = "ends" if many else "all"
    under = "ends" if columns > FEW else "all"
    kind = "heat square" if square else "heat"
    return Markup(
        f'<div class="{kind}" data-figure="{escape(key)}" '
        f'style="--share:{share:.4f};--columns:{columns}">'
        f'<div class="side {spread}">{side}</div>{image}'
        f'<div class="foot {under}">{foot}</div></div>'
        f'<div class="shades"><span>0</span><i></i><span>{escape(shown(largest))}'
        f"{' and more' if figure.shade_to is not None else ''}</span>"
        f"<b>{escape(figure.value_title)}</b></div>"
    )


def heat_numbers(figure: HeatMap) -> dict[str, Any]:
    """What the page needs to tell the number under the pointer."""
    return {
        "rows": list(figure.rows),
        "columns": list(figure.columns),
        "row": figure.row_title,
        "column": figure.column_title,
        "value": figure.value_title,
        "values": [
            [value if value is None or isinstance(value, int) else round(value, 6) for value in row]
            for row in figure.values
        ],
    }


def _largest(figure: HeatMap) -> float:
    if figure.shade_to is not None:
        return figure.shade_to
    return max((v for row in figure.values for v in row if v is not None), default=1.0) or 1.0


def _pixels(figure: HeatMap, largest: float) -> npt.NDArray[np.uint8]:
    values = np.array([[0.0 if v is None else v for v in row] for row in figure.values])
    pixels = np.empty((*values.shape, 4), np.uint8)
    pixels[..., :3] = SHADE
    # What is more than nothing must be seen.
    seen = np.where(values > 0, 0.06 + 0.94 * np.clip(values / largest, 0, 1), 0)
    pixels[..., 3] = np.round(255 * seen)
    return pixels


def _ends(names: Any, many: bool) -> list[str]:
    return [names[0], names[-1]] if many else list(names)

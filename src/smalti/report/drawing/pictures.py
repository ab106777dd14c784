"""Originals beside what became of them, with a button for each way back."""

from __future__ import annotations

from markupsafe import Markup

from smalti.analysis.figures import Pictures

PICTURE = Markup('<img src="data:image/png;base64,{}" alt="{} {}" loading="lazy">')
# Small pictures are drawn so many pixels wide.
SIDE = 72


def draw_pictures(figure: Pictures) -> Markup:
    """Pairs of pictures; one way back is shown at a time."""
    buttons = Markup("").join(
        Markup('<button type="button" data-layer="{}" aria-pressed="{}">{}</button>').format(
            number, "true" if number == 0 else "false", layer.name
        )
        for number, layer in enumerate(figure.layers)
    )
    notes = Markup("").join(
        Markup('<p class="note" data-note="{}"{}>{}: {}</p>').format(
            number, Markup("" if number == 0 else " hidden"), layer.name, layer.note
        )
        for number, layer in enumerate(figure.layers)
    )
    pairs = []
    for place, original in enumerate(figure.originals):
        again = Markup("").join(
            Markup('<span data-layer="{}"{}>{}</span>').format(
                number,
                Markup("" if number == 0 else " hidden"),
                PICTURE.format(layer.pictures[place], layer.name, place),
            )
            for number, layer in enumerate(figure.layers)
        )
        first = PICTURE.format(original, "original", place)
        pairs.append(Markup('<div class="pair">{}{}</div>').format(first, again))
    return Markup(
        '<div class="pictures" style="--side:{}px"><div class="levels" role="group">{}</div>{}'
        '<div class="pairs">{}</div></div>'
    ).format(max(SIDE, min(figure.width, 160)), buttons, notes, Markup("").join(pairs))

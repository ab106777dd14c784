"""A drawing as a file of its own, with the colours that a page would give it."""

from __future__ import annotations

from markupsafe import Markup

# The light colours of a page; a file can't ask what is around it.
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#5d696c}text.title{fill:#1d2426}"
    ".grid{stroke:#ecebe6}.axis{stroke:#5d696c}"
    ".line{stroke:#0d9488;stroke-width:2.2}.point{fill:#0d9488;stroke:#fff}"
)


def standing_alone(drawing: Markup) -> str:
    """A drawing of one SVG element as the text of an SVG file."""
    opening, rest = str(drawing).split(">", 1)
    return (
        f'{opening} xmlns="http://www.w3.org/2000/svg">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{rest}\n'
    )

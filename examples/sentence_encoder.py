"""The demo: a real sentence encoder with an embedding table 25 times smaller.

Takes all-MiniLM-L6-v2 from its package, compresses its table on sentences of Python's own
manual, opens the result in a new process with ``AutoModel``, prints what every method loses at
equal bytes on sentences that none of them has seen, and writes a page that shows it all.

    python examples/sentence_encoder.py [DIRECTORY]
"""

from __future__ import annotations

import pydoc_data.topics
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

import smalti
from smalti.artifacts import PAGE
from smalti.embeddings import build_compressor
from smalti.hub.choosing.candidates import sized
from smalti.hub.choosing.judging import Judge
from smalti.hub.choosing.searching import describe
from smalti.hub.choosing.survey import survey
from smalti.hub.compressing import table_of
from smalti.report import report_compressed, write_page

MODEL = "all-MiniLM-L6-v2"
# Plain product codes, the partial sparse codes of the paper, principal components, integers.
METHODS = ("product", "sparse", "low_rank", "integer")
# The page knows the neighbours of so many tokens.
NEIGHBOURS = 20_000
# The last sentences, which no table is fitted to.
JUDGED = 256
RELOAD = """
import sys, torch
import smalti                                   # makes AutoModel know compressed tables
from transformers import AutoModel, AutoTokenizer
model = AutoModel.from_pretrained(sys.argv[1]).eval()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
with torch.no_grad():
    hidden = model(**tokenizer("Codes are small.", return_tensors="pt")).last_hidden_state
torch.save(hidden, sys.argv[2])
"""


def sentences() -> list[str]:
    """Sentences of the manual that every Python carries, each once."""
    paragraphs = "\n\n".join(pydoc_data.topics.topics.values()).split("\n\n")
    prose = (" ".join(re.sub(r"[`*]", "", text).split()) for text in paragraphs)
    parts = (part for text in prose for part in re.split(r"(?<=[.!?:]) (?=[A-Z])", text))
    return list(dict.fromkeys(part for part in parts if 5 <= part.count(" ") <= 60))


def compare(
    original: smalti.hub.Opened, text: Path, unseen: list[str], budgets: list[int]
) -> Table:
    """What each method loses within the same bytes."""
    rows = original.model.get_input_embeddings().num_embeddings
    known = survey(original.tokenizer, rows, [text], progress=False)
    table, judge = table_of(original, known, choosing=False), Judge(original, unseen)
    shown = Table("bytes", "% of float32", "cosine", "method", box=None)
    tried = set()
    for budget in budgets:
        for method in METHODS:
            for compressor in sized(table, method, budget, None, None):
                if compressor not in tried:
                    tried.add(compressor)
                    made = table.fit(compressor, 0)
                    size = made.size().total
                    percent = f"{100 * size / table.dense_bytes:.2f}"
                    cosine = f"{judge(made).cosine:.4f}"
                    shown.add_row(f"{size:,}", percent, cosine, describe(compressor))
    return shown


def main() -> None:
    console = Console()
    begun = time.perf_counter()
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "small-minilm"
    found = sentences()
    seen, unseen = found[:-JUDGED], found[-JUDGED:]
    text = place.parent / "sentences.txt"
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text("\n".join(seen), encoding="utf-8")
    console.print(f"{len(seen):,} sentences to fit, {len(unseen):,} others to judge")

    small = smalti.compress(MODEL, text, size="4%", progress=True)
    small.save(place, overwrite=True)
    console.print(
        f"table: {small.figures['float32_bytes']:,} -> {small.figures['bytes']:,} bytes, "
        f"{small.figures['times_smaller']} times smaller, saved in {place}"
    )

    reloaded = place.parent / "reloaded.pt"
    subprocess.run([sys.executable, "-c", RELOAD, str(place), str(reloaded)], check=True)
    with torch.no_grad():
        inputs = small.tokenizer("Codes are small.", return_tensors="pt")
        same = torch.equal(torch.load(reloaded), small.model(**inputs).last_hidden_state)
    console.print(f"opened with AutoModel in a new process; outputs are the same bits: {same}")

    original = smalti.open_model(MODEL)
    rows, dim = original.model.get_input_embeddings().weight.shape
    int4 = build_compressor("integer", bits=4).expected_size(rows, dim).total
    budgets = [small.figures["bytes"], int4]
    shown = compare(original, text, unseen, budgets)
    ours = Judge(original, unseen)(small.table).cosine
    percent = f"{small.figures['percent']:.2f}"
    shown.add_row(
        f"{small.figures['bytes']:,}",
        percent,
        f"{ours:.4f}",
        f"[bold]ours[/]: {small.figures['table']}",
    )
    console.print("\nwhat is kept of the outputs on unseen sentences (1 is all), at equal bytes:")
    console.print(shown)
    page = write_page(report_compressed(small, neighbour_rows=NEIGHBOURS), place / PAGE)
    console.print(f"\n{time.perf_counter() - begun:.0f} seconds")
    console.print(f"report: {page} (open it in a browser)", soft_wrap=True)


if __name__ == "__main__":
    main()

"""A trained translation model: translator and vocabulary, in one directory that checks itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from smalti.artifacts import TENSORS, read_artifact, write_artifact
from smalti.data import Subwords
from smalti.errors import ArtifactError, SmaltiError
from smalti.recipes.run_directories import FOLDER, fill, place_of_model
from smalti.recipes.translation.config import TranslationConfig
from smalti.recipes.translation.tables import empty_tables, export_tables
from smalti.training import as_settings
from smalti.translation import Decoding, Translator, build_translator

KIND = "trained translation model"


@dataclass(frozen=True)
class TranslationRun:
    """A trained model, in evaluation mode.

    Args:
        config: What it was trained from.
        translator: Numbers of tokens to numbers of tokens.
        subwords: Texts to numbers of tokens and back.
        decoding: How it translates unless told otherwise.
        longest: Tokens of the longest sentence that it was trained on.
        fingerprint: Of the texts.
        figures: What training reported at its end, by stage.
    """

    config: TranslationConfig
    translator: Translator
    subwords: Subwords
    decoding: Decoding
    longest: int
    fingerprint: str
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def save_translation_run(run: TranslationRun, directory: str | Path) -> Path:
    """Write a run's model into its directory; one that is there already is replaced."""
    place = Path(directory) / FOLDER
    spec = {
        "config": run.config.model_dump(mode="json"),
        "translator": run.translator.spec(),
        "tables": export_tables(run.translator),
        "tokenizer": run.subwords.to_json(),
        "decoding": asdict(run.decoding),
        "longest": run.longest,
        "fingerprint": run.fingerprint,
        "figures": run.figures,
    }
    origin = f"{run.config.data.source}, {run.config.data.target}"
    write_artifact(place, KIND, spec, run.translator.state_dict(), origin=origin)
    return place


def load_translation_run(path: str | Path) -> TranslationRun:
    """Read a trained model; nothing else is needed, no texts and no checkpoints.

    Args:
        path: The directory that was trained into, or its part ``model`` alone.
    """
    place = place_of_model(path)
    artifact = read_artifact(place, KIND)
    spec = artifact.spec
    try:
        tables = empty_tables(spec["tables"])
        run = TranslationRun(
            config=as_settings(TranslationConfig, spec["config"]),
            translator=build_translator(spec["translator"], tables=tables or None),
            subwords=Subwords(spec["tokenizer"]),
            decoding=Decoding(**spec["decoding"]),
            longest=spec["longest"],
            fingerprint=spec["fingerprint"],
            figures=spec["figures"],
        )
    except (SmaltiError, KeyError, TypeError) as error:
        if isinstance(error, ImportError):
            raise
        raise ArtifactError(f"{place} can't be built: {error}") from error
    fill(run.translator, artifact.tensors, place / TENSORS)
    return run

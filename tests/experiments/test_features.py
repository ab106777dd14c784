"""Features come from the network that they name, and fitted quantizers are judged on others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from smalti.data.images import read_images
from smalti.errors import ConfigError, DataError, MissingExtraError
from smalti.experiments.features import FeatureSettings, feature_grids
from smalti.experiments.features.cifar_resnet import WEIGHTS, CifarBlock, CifarResNet
from smalti.experiments.features.efficientnet import trained_efficientnet
from smalti.experiments.kinds import kind_named
from smalti.experiments.kinds.features import _relative_error, _used_share
from smalti.quantizers import Depthwise, VectorQuantizer

SETTINGS = {
    "features": {"network": "untrained", "source": "digits", "size": 8, "train": 24, "test": 8},
    "quantizer": {"quantizer": "vector", "codebook_size": 4},
    "steps": 3,
    "batch_size": 8,
}


def test_a_shortcut_takes_every_other_pixel_and_puts_new_channels_around() -> None:
    block = CifarBlock(2, 4).eval()
    torch.nn.init.zeros_(block.conv2.weight)
    x = torch.arange(32.0).view(1, 2, 4, 4)
    # By hand: nothing is added to pixels (0, 0), (0, 2), (2, 0), (2, 2) of either channel.
    expected = torch.zeros(1, 4, 2, 2)
    expected[0, 1] = torch.tensor([[0.0, 2.0], [8.0, 10.0]])
    expected[0, 2] = torch.tensor([[16.0, 18.0], [24.0, 26.0]])
    torch.testing.assert_close(block(x), expected)


def test_a_depth_that_makes_no_network_is_refused() -> None:
    with pytest.raises(ConfigError, match="6n"):
        CifarResNet(18)


@pytest.mark.data
def test_the_features_tell_the_classes_apart_that_the_network_was_trained_for(
    public: Callable[[str], Path],
) -> None:
    public("images/cifar10_10k2k.npz")
    weights = public(WEIGHTS[20])
    settings = FeatureSettings(network="resnet20", source="cifar10", size=32, train=1, test=200)
    grids = feature_grids(settings)[1]
    saved = torch.load(weights, map_location="cpu", weights_only=True)["state_dict"]
    scores = grids.mean(dim=(1, 2)) @ saved["module.linear.weight"].t()
    found = (scores + saved["module.linear.bias"]).argmax(dim=1)
    labels = read_images("cifar10", "test").labels
    assert labels is not None
    assert len(labels) == 2000, "every tenth image is compared"
    # Published: 92 % on the whole test set.
    assert float((found == labels[::10]).float().mean()) > 0.85


def test_weights_that_are_missing_name_their_file_and_where_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SMALTI_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    settings = FeatureSettings(network="resnet20", source="digits", size=32, train=1, test=1)
    with pytest.raises(DataError, match=r"resnet20.*https"):
        feature_grids(settings)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(MissingExtraError, match=r"smalti\[features\]"):
        trained_efficientnet()


def test_an_unknown_network_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="resnet56"):
        feature_grids(FeatureSettings(network="vgg", source="digits", size=8, train=1, test=1))


def test_the_error_is_a_share_of_what_the_mean_leaves() -> None:
    quantizer = VectorQuantizer(dim=1, codebook_size=2)
    quantizer.book.codewords.copy_(torch.tensor([[[0.0], [3.0]]]))
    quantizer.eval()
    maps = torch.tensor([0.0, 1.0, 4.0, 3.0]).view(1, 2, 2, 1)
    codes = torch.tensor([0, 0, 1, 1]).view(1, 2, 2, 1)
    # By hand: errors 0, 1, 1, 0; around 2 the squares are 4, 1, 4, 1.
    assert _relative_error(quantizer, maps, codes, torch.tensor([2.0])) == pytest.approx(0.2)


@pytest.mark.parametrize(("axis", "share"), [("channel", 1.0), ("pixel", 0.5)])
def test_codes_in_use_are_counted_by_the_codebook_that_gave_them(axis: str, share: float) -> None:
    quantizer = Depthwise(dim=4, num_codebooks=2, codebook_size=2, axis=axis)
    # Two rows of one column; the first row has code 0 in both segments, the second code 1.
    codes = torch.tensor([[[[0, 0]], [[1, 1]]]])
    assert _used_share(quantizer, codes) == share


def test_the_same_seed_gives_the_same_figures_and_another_seed_others(tmp_path: Path) -> None:
    kind = kind_named("features")
    first, again, other = (kind.measure(dict(SETTINGS), seed, tmp_path) for seed in (0, 0, 1))
    assert first.metrics == again.metrics
    assert first.metrics["relative_error"] != other.metrics["relative_error"]
    # Four codewords have two bits.
    assert first.metrics["place_bits"] == 2.0

"""Images to a file and back: lossless to the last bit, in any company, in another process."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from smalti.autoencoders import Autoencoder, build_autoencoder
from smalti.codec import (
    CodecModel,
    decode_codes,
    decode_images,
    encode_images,
    read_info,
    writer_of,
)
from smalti.codec.container import read_file, write_file
from smalti.errors import ArtifactError, ConfigError, DataError, MissingExtraError, ShapeError
from smalti.priors import LevelsPrior


@pytest.mark.parametrize("likelihood", ["categorical", "logistic_mixture"])
def test_lossless_files_give_the_very_pixels(
    likelihood: str, model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    spec = {**model.autoencoder.spec(), "likelihood": likelihood}
    own = CodecModel(build_autoencoder(spec).eval(), model.prior)
    encoded = encode_images(own, pixels, tmp_path / "a.smt", lossless=True)
    found = decode_images(tmp_path / "a.smt", own)
    assert found.dtype == torch.uint8
    assert torch.equal(found, pixels)
    assert encoded.bytes == (tmp_path / "a.smt").stat().st_size
    assert encoded.pixel_bytes > encoded.code_bytes > 0
    assert encoded.bits_per_dim == pytest.approx(8 * encoded.bytes / (7 * 3 * 64))
    assert encoded.bits_per_pixel == pytest.approx(8 * encoded.bytes / (7 * 64))
    assert encoded.mse_0_to_1 == 0


def test_deep_pixels_come_back(tmp_path: Path) -> None:
    torch.manual_seed(0)
    autoencoder = build_autoencoder(
        "convolutional",
        channels=1,
        bits=12,
        likelihood="logistic_mixture",
        quantizer={"quantizer": "finite_scalar", "levels": [4, 5]},
        **{"dim": 8, "width": 8, "hidden": 8, "depth": 1},
    ).eval()
    levels = zip(autoencoder.grids(8, 12), autoencoder.code_sizes, strict=True)
    model = CodecModel(autoencoder, LevelsPrior.over(list(levels), "uniform"))
    pixels = torch.randint(2**12, (2, 1, 8, 12), dtype=torch.int32)
    encode_images(model, pixels, tmp_path / "a.smt", lossless=True)
    found = decode_images(tmp_path / "a.smt", model)
    assert found.dtype == torch.int32
    assert torch.equal(found, pixels)


def test_lossy_files_give_what_the_codes_stand_for(
    model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    encoded = encode_images(model, pixels, tmp_path / "a.smt")
    codes = decode_codes(tmp_path / "a.smt", model)
    expected = model.autoencoder.encode(pixels)
    assert all(torch.equal(a, b) for a, b in zip(codes, expected, strict=True))
    with torch.no_grad():
        image = model.autoencoder.likelihood.image(model.autoencoder.decode(expected))
    # A mean may lie on the border of two values.
    found = decode_images(tmp_path / "a.smt", model)
    differences = (found.int() - image.int()).abs()
    assert differences.max() <= 1
    assert differences.float().mean() < 0.001
    assert encoded.pixel_bytes == 0
    error = (found.numpy() / 255.0 - pixels.numpy() / 255.0) ** 2
    assert encoded.mse_0_to_1 == pytest.approx(error.mean())


def test_codes_are_read_from_lossless_files_too(
    model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    encode_images(model, pixels, tmp_path / "a.smt", lossless=True)
    encode_images(model, pixels, tmp_path / "b.smt")
    one, other = decode_codes(tmp_path / "a.smt", model), decode_codes(tmp_path / "b.smt", model)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("lossless", [False, True])
def test_an_image_is_the_same_alone_and_in_company(
    lossless: bool, model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    encode_images(model, pixels, tmp_path / "all.smt", lossless)
    together = decode_images(tmp_path / "all.smt", model)
    for number in (0, 6):
        encode_images(model, pixels[number : number + 1], tmp_path / "one.smt", lossless)
        assert torch.equal(decode_images(tmp_path / "one.smt", model)[0], together[number])


def test_threads_change_neither_the_file_nor_the_images(
    model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    # Walks of learned priors have a test of their own.
    levels = [member.level for member in model.prior.members()]
    own = CodecModel(model.autoencoder, LevelsPrior.over(levels, "uniform"))
    torch.set_num_threads(1)
    encode_images(own, pixels[:2], tmp_path / "one.smt", lossless=True)
    torch.set_num_threads(2)
    encode_images(own, pixels[:2], tmp_path / "two.smt", lossless=True)
    assert (tmp_path / "one.smt").read_bytes() == (tmp_path / "two.smt").read_bytes()
    assert torch.equal(decode_images(tmp_path / "one.smt", own), pixels[:2])


@pytest.mark.slow
def test_another_process_decodes_the_same(
    model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    for name, lossless in (("lossy", False), ("lossless", True)):
        encode_images(model, pixels, tmp_path / f"{name}.smt", lossless)
    specs = [model.autoencoder.spec(), model.prior.spec()]
    (tmp_path / "specs.json").write_text(json.dumps(specs))
    states = [model.autoencoder.state_dict(), model.prior.state_dict()]
    torch.save(states, tmp_path / "states.pt")
    program = """
import hashlib, json, sys, torch
from pathlib import Path
from smalti.autoencoders import build_autoencoder
from smalti.codec import CodecModel, decode_images
from smalti.priors import LevelsPrior
place = Path(sys.argv[1])
autoencoder, prior = json.loads((place / "specs.json").read_text())
model = CodecModel(build_autoencoder(autoencoder), LevelsPrior(**prior))
for part, state in zip((model.autoencoder, model.prior), torch.load(place / "states.pt")):
    part.load_state_dict(state)
for name in ("lossy", "lossless"):
    pixels = decode_images(place / f"{name}.smt", model)
    print(hashlib.sha256(pixels.numpy().tobytes()).hexdigest())
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    printed = subprocess.check_output(command, text=True).split()
    here = [decode_images(tmp_path / "lossy.smt", model), pixels]
    assert printed == [hashlib.sha256(part.numpy().tobytes()).hexdigest() for part in here]


def test_many_images_are_cut_into_blocks(tmp_path: Path) -> None:
    torch.manual_seed(0)
    autoencoder = build_autoencoder(
        "convolutional",
        channels=1,
        likelihood="square_error",
        quantizer={"quantizer": "vector", "codebook_size": 8},
        **{"dim": 4, "width": 4, "hidden": 4, "depth": 1},
    ).eval()
    levels = zip(autoencoder.grids(4, 4), autoencoder.code_sizes, strict=True)
    model = CodecModel(autoencoder, LevelsPrior.over(list(levels), "uniform"))
    pixels = torch.randint(256, (300, 1, 4, 4), dtype=torch.uint8)
    encode_images(model, pixels, tmp_path / "a.smt")
    _, blocks = read_file(tmp_path / "a.smt")
    assert [block.images for block in blocks] == [256, 44]
    assert torch.equal(decode_codes(tmp_path / "a.smt", model)[0], autoencoder.encode(pixels)[0])
    assert decode_images(tmp_path / "a.smt", model).shape == (300, 1, 4, 4)


def test_the_header_says_what_a_reader_must_know(
    model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    encode_images(model, pixels, tmp_path / "a.smt", lossless=True)
    header = read_info(tmp_path / "a.smt")
    assert header.model == model.fingerprint()
    assert (header.count, header.shape, header.bits) == (7, (3, 8, 8), 8)
    assert header.lossless
    assert header.prior == ["autoregressive", "autoregressive"]
    assert header.versions["torch"] == torch.__version__


def test_another_model_is_refused(
    model: CodecModel, other_model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    encode_images(model, pixels, tmp_path / "a.smt")
    for use in (decode_images, decode_codes):
        with pytest.raises(ArtifactError, match="was written with the model"):
            use(tmp_path / "a.smt", other_model)
    assert writer_of(tmp_path / "a.smt", [other_model, model]) is model
    with pytest.raises(ArtifactError, match="another model"):
        writer_of(tmp_path / "a.smt", [other_model])


@dataclass
class OtherArithmetic:
    """A machine that computes otherwise: its model claims to be the writer's and is not."""

    autoencoder: Autoencoder
    prior: LevelsPrior
    claimed: str

    def fingerprint(self) -> str:
        """That of the writer."""
        return self.claimed


def test_numbers_that_differ_between_machines_are_reported(
    model: CodecModel, other_model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    encode_images(model, pixels, tmp_path / "a.smt", lossless=True)
    name = model.fingerprint()
    prior_differs = OtherArithmetic(model.autoencoder, other_model.prior, name)
    with pytest.raises(ArtifactError, match=r"block 1 .* other probabilities"):
        decode_images(tmp_path / "a.smt", prior_differs)
    decoder_differs = OtherArithmetic(other_model.autoencoder, model.prior, name)
    with pytest.raises(ArtifactError, match=r"block 2 .* other probabilities"):
        decode_images(tmp_path / "a.smt", decoder_differs)


def test_files_that_contradict_themselves_are_refused(
    model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    path = tmp_path / "a.smt"
    encode_images(model, pixels, path, lossless=True)
    header, blocks = read_file(path)
    for changes in ({"count": 8}, {"shape": [3, 16, 16]}, {"shape": [1, 8, 8]}, {"bits": 7}):
        write_file(path, {**header, **changes}, blocks)
        with pytest.raises(ArtifactError, match="damaged"):
            decode_images(path, model)
    for wrong in (blocks[:1], blocks[::-1], [*blocks, *blocks], []):
        write_file(path, header, wrong)
        with pytest.raises(ArtifactError, match="its blocks"):
            decode_images(path, model)


def test_the_fingerprint_follows_every_number_and_setting(model: CodecModel) -> None:
    names = {model.fingerprint()}
    for part in (model.autoencoder, model.prior):
        for parameter in list(part.parameters())[::7]:
            with torch.no_grad():
                kept = parameter.clone()
                parameter.view(-1)[-1] += 1e-3
                names.add(model.fingerprint())
                parameter.copy_(kept)
            assert model.fingerprint() in names
    changed = 1 + sum(len(list(p.parameters())[::7]) for p in (model.autoencoder, model.prior))
    assert len(names) == changed


def test_images_that_can_not_be_written_are_refused(
    model: CodecModel, pixels: Tensor, tmp_path: Path
) -> None:
    path = tmp_path / "a.smt"
    with pytest.raises(DataError, match="at least one"):
        encode_images(model, pixels[:0], path)
    with pytest.raises(ShapeError, match="whole numbers"):
        encode_images(model, pixels[:, :1], path)
    with pytest.raises(ShapeError, match="the prior knows"):
        encode_images(model, pixels.repeat(1, 1, 2, 2), path)
    with pytest.raises(ArtifactError, match="no such directory"):
        encode_images(model, pixels, tmp_path / "missing" / "a.smt")
    spec = {**model.autoencoder.spec(), "likelihood": "square_error"}
    blurred = CodecModel(build_autoencoder(spec).eval(), model.prior)
    with pytest.raises(ConfigError, match="lossless"):
        encode_images(blurred, pixels, path, lossless=True)
    gaussian = build_autoencoder("gaussian", dim=4, width=16, hidden=8, depth=1)
    with pytest.raises(ConfigError, match="no codes"):
        encode_images(CodecModel(gaussian, model.prior), pixels, path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_library_is_named(
    model: CodecModel, pixels: Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode_images(model, pixels[:1], tmp_path / "a.smt")
    # What an import finds where a package is not installed.
    monkeypatch.setitem(sys.modules, "constriction", None)
    with pytest.raises(MissingExtraError, match=r"smalti\[codec\]"):
        encode_images(model, pixels, tmp_path / "b.smt")
    with pytest.raises(MissingExtraError, match=r"smalti\[codec\]"):
        decode_images(tmp_path / "a.smt", model)
    assert not (tmp_path / "b.smt").exists()

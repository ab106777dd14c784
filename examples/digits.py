"""A tiny autoencoder of real digits with four kinds of codes: distortion, rate, codes in use.

Run it with ``make digits``. The digits (1,797 of 8 x 8 pixels) come with scikit-learn.
"""

from __future__ import annotations

import time

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor, nn

from smalti.codes import Usage
from smalti.quantizers import (
    ChannelsFirst,
    Depthwise,
    Identity,
    Quantizer,
    SoftEM,
    VectorQuantizer,
)

WIDTH = 16
STEPS = 1000
HELD_OUT = 297
ARMS: dict[str, Quantizer] = {
    "no codes": Identity(WIDTH),
    "VQ": VectorQuantizer(WIDTH, 64),
    "depthwise": Depthwise(WIDTH, 4, 64),
    "soft EM": SoftEM(WIDTH, 64, temperature="scaled"),
}


class Autoencoder(nn.Module):
    """8 x 8 pixels to a 4 x 4 grid of vectors, codes, and back."""

    def __init__(self, quantizer: Quantizer) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(32, WIDTH, 1)
        )
        self.quantizer = ChannelsFirst(quantizer)
        self.decoder = nn.Sequential(
            nn.Conv2d(WIDTH, 32, 3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
        )

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Restored pixels, codes, and the quantizer's loss."""
        out = self.quantizer(self.encoder(pixels))
        return self.decoder(out.vectors), out.codes, out.loss


def main() -> None:
    digits = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16
    train, test = digits[:-HELD_OUT], digits[-HELD_OUT:]
    console = Console()
    table = Table(
        "codes", "distortion (MSE)", "rate (bits/image)", "entropy (bits/image)", "codes in use",
        "seconds", box=None,
    )  # fmt: skip
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for name, quantizer in ARMS.items():
            start = time.perf_counter()
            model = learn(quantizer, train, progress, name)
            error, usage = measure(model, test)
            positions = 16
            coded = quantizer.num_codebooks > 0
            table.add_row(
                name,
                f"{error:.4f}",
                f"{positions * quantizer.bits_per_vector:.0f}" if coded else "-",
                f"{positions * usage.entropy_bits:.0f}" if coded else "-",
                f"{usage.used_share:.0%} of {sum(quantizer.code_sizes)}" if coded else "-",
                f"{time.perf_counter() - start:.1f}",
            )
    console.print(
        f"{len(train)} digits to learn from, {len(test)} held out; an image is 4 x 4 vectors of "
        f"{WIDTH}, 512 bits as 8-bit pixels.\n"
    )
    console.print(table)


def learn(quantizer: Quantizer, train: Tensor, progress: Progress, name: str) -> Autoencoder:
    torch.manual_seed(0)
    model = Autoencoder(quantizer)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in progress.track(range(STEPS), description=name):
        pixels = train[torch.randint(len(train), (64,))]
        restored, _, loss = model(pixels)
        optimizer.zero_grad()
        ((restored - pixels).square().mean() + loss).backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def measure(model: Autoencoder, test: Tensor) -> tuple[float, Usage]:
    """The error on held-out digits, and the codes that they use."""
    restored, codes, _ = model(test)
    usage = Usage(model.quantizer.code_sizes)
    usage.update(codes)
    return float((restored - test).square().mean()), usage


if __name__ == "__main__":
    main()

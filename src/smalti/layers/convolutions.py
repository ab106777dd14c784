"""Convolutions that several image models share; channels first."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from smalti.errors import require

# A block of GoogLeNet has four branches, each with an equal share of the channels here.
BRANCHES = 4


class ResidualBlock(nn.Module):
    """What comes in, plus ReLU, 3x3, ReLU, 1x1 of it.

    Args:
        channels: In and out.
        hidden: Between the two convolutions.
    """

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.change = nn.Sequential(
            # Not in place: the sum below needs x as it came.
            nn.ReLU(),
            nn.Conv2d(channels, hidden, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(hidden, channels, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """``(batch, channels, height, width)``, in and out."""
        changed: Tensor = x + self.change(x)
        return changed


class ResidualStack(nn.Sequential):
    """``depth`` residual blocks, then a ReLU.

    Args:
        channels: In and out.
        hidden: Inside each block.
        depth: How many blocks.
    """

    def __init__(self, channels: int, hidden: int, depth: int) -> None:
        blocks = [ResidualBlock(channels, hidden) for _ in range(depth)]
        super().__init__(*blocks, nn.ReLU())


class InceptionBlock(nn.Module):
    """Four views of different reach side by side: 1x1, 3x3, 5x5, and the local maximum.

    Args:
        channels: In and out, a quarter from each branch.
        hidden: What the 3x3 and the 5x5 branch are narrowed to first.
    """

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        require(
            channels % BRANCHES == 0,
            f"an inception block needs channels divisible by {BRANCHES}, got {channels}",
        )
        share = channels // BRANCHES
        self.branches = nn.ModuleList(
            [
                nn.Conv2d(channels, share, 1),
                _narrowed(channels, hidden, share, 3),
                _narrowed(channels, hidden, share, 5),
                nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), nn.Conv2d(channels, share, 1)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        """``(batch, channels, height, width)``, in and out; never negative."""
        return torch.cat([branch(x) for branch in self.branches], dim=1).relu_()


class Downsample(nn.Conv2d):
    """Half the height and half the width.

    Args:
        channels: In.
        outputs: Channels out.
        kernel: Height and width of the kernel.
    """

    def __init__(self, channels: int, outputs: int, kernel: int = 4) -> None:
        super().__init__(channels, outputs, kernel, stride=2, padding=(kernel - 1) // 2)


class Upsample(nn.ConvTranspose2d):
    """Twice the height and twice the width.

    Args:
        channels: In.
        outputs: Channels out.
        kernel: Height and width of the kernel.
    """

    def __init__(self, channels: int, outputs: int, kernel: int = 4) -> None:
        padding = (kernel - 1) // 2
        # An odd kernel alone would give one row and one column too few.
        super().__init__(
            channels, outputs, kernel, stride=2, padding=padding, output_padding=kernel % 2
        )


def _narrowed(channels: int, hidden: int, outputs: int, kernel: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, hidden, 1),
        nn.ReLU(inplace=True),
        nn.Conv2d(hidden, outputs, kernel, padding=kernel // 2),
    )

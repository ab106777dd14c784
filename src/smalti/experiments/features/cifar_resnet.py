"""The residual networks for CIFAR-10 up to their last map.

Reference:
    He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016,
    arXiv:1512.03385, section 4.2 (shortcuts without weights).

Differs from the paper:
    The pooling and the classifier are left out: what comes out is the map before them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from smalti.data.locate import locate
from smalti.errors import DataError, require

# Public weights by depth, as they lie in the folder of data sets.
WEIGHTS = {
    20: "weights/cifar10_resnet20-12fca82f.th",
    56: "weights/cifar10_resnet56-4bfd9763.th",
}


class CifarBlock(nn.Module):
    """Two 3x3 convolutions around a shortcut that has no weights.

    Args:
        inside: Channels that come in.
        outside: Channels that go out; where there are more, height and width are halved.
    """

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        stride = 1 if inside == outside else 2
        self.conv1 = nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.stride, self.more = stride, outside - inside

    def forward(self, x: Tensor) -> Tensor:
        """``(batch, channels, height, width)``."""
        changed = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        around = x[:, :, :: self.stride, :: self.stride]
        # New channels are zero, half of them on either side.
        half = self.more // 2
        return functional.relu(changed + functional.pad(around, (0, 0, 0, 0, half, half)))


class CifarResNet(nn.Module):
    """64 channels of 8 x 8 from pixels of 32 x 32.

    Args:
        depth: Layers of weights of the whole network, 6n + 2.
    """

    def __init__(self, depth: int) -> None:
        super().__init__()
        require(depth >= 8 and depth % 6 == 2, f"expected a depth of 6n + 2, got {depth}")
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        blocks = (depth - 2) // 6
        self.layer1 = nn.Sequential(*(CifarBlock(16, 16) for _ in range(blocks)))
        self.layer2 = nn.Sequential(
            CifarBlock(16, 32), *(CifarBlock(32, 32) for _ in range(blocks - 1))
        )
        self.layer3 = nn.Sequential(
            CifarBlock(32, 64), *(CifarBlock(64, 64) for _ in range(blocks - 1))
        )

    def forward(self, x: Tensor) -> Tensor:
        """The last map ``(batch, 64, height / 4, width / 4)``."""
        x = functional.relu(self.bn1(self.conv1(x)))
        features: Tensor = self.layer3(self.layer2(self.layer1(x)))
        return features


def trained_resnet(depth: int) -> CifarResNet:
    """A network with its public weights."""
    path = locate(WEIGHTS[depth])
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
        weights = {name.removeprefix("module."): tensor for name, tensor in saved.items()}
        network = CifarResNet(depth)
        network.load_state_dict(
            {name: part for name, part in weights.items() if not name.startswith("linear.")}
        )
    except (OSError, RuntimeError, KeyError, AttributeError) as error:
        raise DataError(f"{path} does not hold the weights of ResNet-{depth}: {error}") from error
    return network


def untrained_resnet() -> CifarResNet:
    """A shallow network with weights of a fixed seed, to try things out without any file."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return CifarResNet(8)

"""The states of all random generators: read, set, seeded, and kept apart from each other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

CPU = torch.device("cpu")
# What numbers are drawn for: each has its own, whatever the other seeds are.
STEPS, BATCHES, REPORTS = 0, 1, 2


def random_states(device: torch.device = CPU) -> dict[str, Any]:
    """The states of Python's, NumPy's and torch's generators, and of the device's."""
    states = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if device.type != "cpu":
        states["device"] = torch.get_device_module(device).get_rng_state()
    return states


def set_random_states(states: dict[str, Any], device: torch.device = CPU) -> None:
    """Set what :func:`random_states` gave."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if device.type != "cpu" and "device" in states:
        torch.get_device_module(device).set_rng_state(states["device"])


def seed_all(device: torch.device, *seeds: int) -> None:
    """Seed all generators from several numbers together, such as a seed and an epoch."""
    for_python, for_numpy, for_torch = _spread(*seeds, count=3)
    random.seed(for_python)
    np.random.seed(for_numpy % 2**32)
    torch.default_generator.manual_seed(for_torch)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(for_torch)


def generator_of(*seeds: int) -> torch.Generator:
    """A generator of its own, seeded from several numbers together."""
    return torch.Generator().manual_seed(_spread(*seeds, count=1)[0])


def seeded_states(device: torch.device, *seeds: int) -> dict[str, Any]:
    """The states after :func:`seed_all`, which themselves are not touched."""
    outside = random_states(device)
    seed_all(device, *seeds)
    made = random_states(device)
    set_random_states(outside, device)
    return made


@contextmanager
def apart(states: dict[str, Any], device: torch.device = CPU) -> Iterator[None]:
    """Draw from other generators in this block.

    Args:
        states: Theirs; they are moved on by what is drawn.
        device: Whose generator is meant besides those of the processor.
    """
    outside = random_states(device)
    set_random_states(states, device)
    try:
        yield
    finally:
        states.update(random_states(device))
        set_random_states(outside, device)


def packed_states(states: dict[str, Any]) -> dict[str, Any]:
    """States as tensors and numbers, for a checkpoint."""
    version, numbers, gauss = states["python"]
    name, keys, place, has_gauss, cached = states["numpy"]
    return {
        **states,
        "python": [version, torch.tensor(numbers), gauss],
        "numpy": [name, torch.from_numpy(keys.astype(np.int64)), place, has_gauss, cached],
    }


def unpacked_states(packed: dict[str, Any]) -> dict[str, Any]:
    """The inverse of :func:`packed_states`."""
    version, numbers, gauss = packed["python"]
    name, keys, *rest = packed["numpy"]
    return {
        **packed,
        "python": (version, tuple(numbers.tolist()), gauss),
        "numpy": (name, keys.numpy().astype(np.uint32), *rest),
    }


def _spread(*seeds: int, count: int) -> list[int]:
    """Numbers of 63 bits that differ in all their bits when a seed differs in one."""
    words = np.random.SeedSequence(seeds).generate_state(count, np.uint64)
    return [int(word >> np.uint64(1)) for word in words]

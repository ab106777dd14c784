"""What is made of weights follows them, however they change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from smalti.layers.remade import Remade, settled


def stepped(
    kind: Callable[..., torch.optim.Optimizer], **settings: Any
) -> Callable[[nn.Linear], None]:
    def change(layer: nn.Linear) -> None:
        layer(torch.ones(1, 3)).sum().backward()
        kind(layer.parameters(), lr=0.1, **settings).step()

    return change


def replaced(layer: nn.Linear) -> None:
    layer.weight = nn.Parameter(layer.weight.detach() + 1)


CHANGES: dict[str, Callable[[nn.Linear], Any]] = {
    "an optimizer": stepped(torch.optim.SGD),
    "a fused optimizer": stepped(torch.optim.Adam, fused=True),
    "behind torch's back": lambda layer: layer.weight.data.add_(1.0),
    "a state": lambda layer: layer.load_state_dict(nn.Linear(3, 2).state_dict()),
    "a state that is taken over": lambda layer: layer.load_state_dict(
        nn.Linear(3, 2).state_dict(), assign=True
    ),
    "another type of number": lambda layer: layer.double(),
    "another parameter": replaced,
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_made_anew_after_a_change_and_only_then(change: str) -> None:
    layer, remade = nn.Linear(3, 2), Remade[torch.Tensor]()

    def sums() -> torch.Tensor:
        return remade.get("sums", lambda: layer.weight.detach().sum(dim=1), layer)

    first = sums()
    assert sums() is first
    CHANGES[change](layer)
    torch.testing.assert_close(sums(), layer.weight.detach().sum(dim=1))


@pytest.mark.parametrize("change", CHANGES)
def test_a_promise_spares_the_look_but_not_the_first_nor_the_one_after_it(change: str) -> None:
    layer, remade = nn.Linear(3, 2), Remade[torch.Tensor]()

    def sums() -> torch.Tensor:
        return remade.get("sums", lambda: layer.weight.detach().sum(dim=1), layer)

    sums()
    CHANGES[change](layer)
    with settled():
        first = sums()
        torch.testing.assert_close(first, layer.weight.detach().sum(dim=1))
        CHANGES[change](layer)
        with settled():
            assert sums() is first
    torch.testing.assert_close(sums(), layer.weight.detach().sum(dim=1))


def test_names_are_kept_apart_and_copies_begin_without() -> None:
    layer, remade = nn.Linear(3, 2), Remade[int]()
    assert remade.get("one", lambda: 1, layer) == 1
    assert remade.get("two", lambda: 2, layer) == 2
    assert remade.get("one", lambda: 3, layer) == 1
    assert copy.deepcopy(remade).get("one", lambda: 3, layer) == 3


def test_also_in_inference_mode() -> None:
    layer, remade = nn.Linear(3, 2), Remade[int]()
    with torch.inference_mode():
        assert remade.get("one", lambda: 1, layer) == 1
    stepped(torch.optim.Adam, fused=True)(layer)
    assert remade.get("one", lambda: 2, layer) == 2

from torch import Tensor
def suits(x: Tensor, codebook: Tensor) -> bool:
    return False
def nearest(x: Tensor, codebook: Tensor) -> Tensor:
    raise AssertionError

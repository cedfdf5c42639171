"""What the keywords take, to annotate functions that hand them on."""

from interop_plugins.signatures import Device as Device
from interop_plugins.signatures import Dtype as Dtype
from interop_plugins.signatures import Target as Target

from ._model.typing import CopyLike as Copy
from ._model.typing import EffectNames as Effects
from ._model.typing import OrderLike as Order

__all__ = ["Copy", "Device", "Dtype", "Effects", "Order", "Target"]

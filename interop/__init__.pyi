"""Hand arrays from one framework to another by the cheapest correct way.

>>> import interop
>>> interop.convert([1.0, 2.0], to="numpy")
array([1., 2.])

======================== =============================================================
``convert(x, to)``       an array of another framework; shared memory where possible
``plan(x, to)``          the route that `convert` would take, and what it does
``convert_tree(x, to)``  the same for all arrays in a dict, list, dataclass, pytree …
``accepts(to)``          makes a function take arrays of every framework
``converter(to)``        a function for calls that are alike
``policy``, ``trace``    for a block: what is permitted; what has happened
``formats()``            what can be converted; ``plugins()`` and ``conversions()``, too
======================== =============================================================

``help(interop.convert)`` has the keywords. The functions are the methods of one `Interop`, which
holds all state. Names are imported when they are first used (as SPEC 1 of Scientific Python
recommends), so that ``import interop`` costs next to nothing. The stub beside this file lists them.
"""

# Every public name and where it lives: `__init__.py` reads these lines, too.
from interop._request.policy import policy as policy
from interop.kit.staging import free_staging_buffers as free_staging_buffers
from interop_plugins.quantized.array import QuantizedArray as QuantizedArray

# The methods of the shared instance that take words, as type checkers see them.
from interop_plugins.signatures import accepts as accepts  # of default
from interop_plugins.signatures import convert as convert  # of default
from interop_plugins.signatures import convert_tree as convert_tree  # of default
from interop_plugins.signatures import converter as converter  # of default
from interop_plugins.signatures import make_spec as make_spec  # of default
from interop_plugins.signatures import plan as plan  # of default

from . import errors as errors
from ._api.default import default as default
from ._api.interop import Interop as Interop
from ._api.interop import set_default_policy as set_default_policy
from ._execution.trace import Receipt as Receipt
from ._execution.trace import Trace as Trace
from ._execution.trace import trace as trace
from ._model.conversion import Conversion as Conversion
from ._model.conversion import Cost as Cost
from ._model.effect import EFFECTS as EFFECTS
from ._model.extension import DtypeNames as DtypeNames
from ._model.format import Format as Format
from ._model.format import Parts as Parts
from ._model.spec import TRAITS as TRAITS
from ._model.spec import Spec as Spec
from ._planning.plan import Plan as Plan
from ._version import __version__ as __version__
from .errors import InteropError as InteropError

# Its other methods.
conversion = default.conversion
conversions = default.conversions
formats = default.formats
plugins = default.plugins
register = default.register
spec = default.spec

"""How much is kept: everything that can be got at from an object, counted."""

import gc
from types import FunctionType, MethodType, ModuleType

# What is shared with everything else that runs in this process.
_SHARED = (type, ModuleType, FunctionType, MethodType)


def entries(root: object) -> int:
    """How many things can be got at from a run: entries of all that it keeps."""
    seen = {id(root)}
    todo = [root]
    while todo:
        for one in gc.get_referents(todo.pop()):
            if id(one) not in seen and not isinstance(one, _SHARED):
                seen.add(id(one))
                todo.append(one)
    return len(seen)

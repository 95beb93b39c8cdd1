"""Memory in use: the number of entries reachable from an object."""

import gc
from types import FunctionType, MethodType, ModuleType

# Objects shared by the whole process.
_SHARED = (type, ModuleType, FunctionType, MethodType)


def entries(root: object) -> int:
    """The number of entries reachable from a run."""
    seen = {id(root)}
    todo = [root]
    while todo:
        for item in gc.get_referents(todo.pop()):
            if id(item) not in seen and not isinstance(item, _SHARED):
                seen.add(id(item))
                todo.append(item)
    return len(seen)

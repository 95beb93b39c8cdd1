"""The complete state of a run between two commands. Only the engine and the modules it dispatches to change it."""

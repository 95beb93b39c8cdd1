"""Offline: from a source map to a compiled one, with everything that is wrong with it.

compile        from a source map, truck profiles and parameters to a compiled map, or to a report of what is wrong
source_form    A source map in its canonical form: what `mapHash` is computed from
validation     what the validator says about a map that could be read: tight bends, narrow lanes
"""

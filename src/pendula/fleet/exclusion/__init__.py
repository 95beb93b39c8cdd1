"""Who excludes whom: swept areas, cells, turning discs, corridors, and where a truck may stand.

cells                cells: every directed edge cut into short ranges of pivot positions
conflicts            which cells exclude each other: swept areas that meet, opposite directions of a group
corridors            corridors: maximal chains of groups over nodes in which nothing branches; and how far apart
critical_sections    critical sections: those an author drew, and one for every dead end in which trucks load
kinks                bends in nodes that a truck passes without a stop: it turns there in one place
relation             A symmetric relation over numbered resources, kept as ranges of numbers
standing             where a truck may be left standing: free, unwanted or forbidden
swept                the area an envelope sweeps while the pivot is anywhere in a cell
turning_discs        turning discs: where on every edge an envelope would enter the disc of a node
"""

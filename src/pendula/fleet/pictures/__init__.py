"""A map as a picture, and as shapes for other tools.

geojson      A compiled map as GeoJSON for other programs: nodes, lanes, swept areas
highlight    parts of a map for people: what an id stands for, and what is said of an edge, a node, a run of cells
map          A compiled map as one picture: lanes with their directions, cells by where a truck may stand
sheet        the sheet a map is drawn on: its scale, shapes and texts as SVG
"""

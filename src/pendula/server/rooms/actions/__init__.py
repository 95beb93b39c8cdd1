"""The room of actions over HTTP, with its demo.

demo      the living example of the room `actions`: the town of the package
routes    the room `actions` over HTTP: worlds are made
views     what a world says over HTTP: how it stands at a moment and why, its events, its logs
"""

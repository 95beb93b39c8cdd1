"""What a truck is, and the room it needs around it.

envelope    the safety envelope of a truck and the distances that follow from it: lead and trail, turning radius
outline     the corners of a truck and of its safety envelope at a pose, in metres
profiles    what is known of a type of truck: its outline, its margins with their sources, its dynamics
"""

"""How a minute is lived through: functions over the state of a world.

interrupting    who may break off whom
"""

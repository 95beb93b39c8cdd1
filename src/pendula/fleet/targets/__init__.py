"""Where a truck is told to go: hold points, speeds and rolling targets.

hold_points      the largest position a truck may reach, its place and its explanation
speed_limits     how fast it may go so that it stops where it has to
rolling_target   the point on the route that is sent, and its command
sequence         numbers of commands and their acknowledgement
"""

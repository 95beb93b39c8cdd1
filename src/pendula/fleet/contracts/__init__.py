"""The payloads of the room, and their schemas.

maps       the payloads of maps, trucks and routes as typed models; `schema` makes JSON Schemas of them
schema     JSON Schemas of all contracts, made from the models
traffic    the payloads of the running system as typed models: states, requests, locks, commands, tasks, operators
"""

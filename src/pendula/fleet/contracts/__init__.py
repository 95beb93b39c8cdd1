"""The payloads of the room as typed models, and their JSON Schemas.

maps       maps, trucks and routes
traffic    the running system: states, requests, locks, commands, tasks, operators
schema     the table of all contracts: parse, serialise, and schemas made from the models
"""

from pendula.fleet.contracts.schema import CONTRACTS, ContractRefused, parse, schema_of, serialise

__all__ = ["CONTRACTS", "ContractRefused", "parse", "schema_of", "serialise"]

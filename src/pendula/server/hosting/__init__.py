"""Hosts schedulers and their engines, each engine with its thread and clock.

scheduler_spec   the description of a scheduler, and the server as a scheduler uses it
supervisor       opens, watches and closes all engines and services of a server
engine_host      a served engine: its driver, its thread, its listeners
creation         creates and removes engines on disk, atomically
pace             a steady clock for an engine in real time
history          past states of engines, with one cached
readiness        readiness of a store; a slow answer is tolerated for a while
past             threads for reads of past states
moments          index of a journal by time, and its incidents
choices          questions and command forms of an engine, with examples
streams          server-sent events with resume and explicit gaps
"""

from pendula.server.hosting.scheduler_spec import Demo, Host, Lifecycle, New, SchedulerSpec, Sentences, Service, Store

__all__ = ["Demo", "Host", "Lifecycle", "New", "SchedulerSpec", "Sentences", "Service", "Store"]

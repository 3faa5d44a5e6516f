"""The engine's own life as relations: tables that say what it holds, does and costs.

advice          what an engine's own figures say that its user could do better
disclosure      what somebody has to be allowed to read in order to be told of something
observation     what the relations are computed from: one look at an engine
process_memory  what the process has taken beside what the engine counts
spans           epochs, sweeps, installations and requests as spans of OpenTelemetry
relations       every system relation: its columns, what they mean, and how its rows are read from the engine
tables          makes the tables when somebody asks for them, and keeps them up to date while somebody reads them
"""

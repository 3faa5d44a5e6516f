"""The server: many clients on one engine. `import tektite` does not load it.

command          the commands `tektite serve` and `tektite password`
connectors/      sources and sinks that statements make
connections      who is connected, and how many may be
durable_catalog  what clients have created, for the next start
embedded         the console of an engine that a program holds
epochs           who closes epochs, and when a write is durable
feed_registry    the feeds of a server, by what they tell of
feeds            the changes of a table or a view for all its subscribers
finisher         goes on with what was begun and not finished in its turn
granularity      how often a subscriber is told
health           liveness, readiness and status
installation     opens the engine and installs what a description says
interests        one client's subscription to a feed
logs             structured logs
plan             reads and checks the description of a server
postgres/        PostgreSQL's protocol
rights           what a user may do, for requests that are no statements
scram            SCRAM-SHA-256: verifiers of passwords, and the exchange
server           the server: its engine, its front ends and what they share
sessions         one client's session: statements, transactions, cancelling
subscriptions    the changes that SUBSCRIBE gives a client
users            who may connect
web/             HTTP and WebSocket
work             threads that call the engine, and calls that can be cancelled
"""

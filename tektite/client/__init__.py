"""Clients of a server: `tektite.connect` and `tektite.connect_async`. They speak `docs/wire-protocol.md` over a WebSocket.

absent_names   what a client answers for names that it does not have
address        where a server is, from a URL
async_session  AsyncSession: what a client offers, as coroutines
conversion     what users give, as tables that can be sent
event_loop     the event loop in which clients without one run
link           the connection: requests, answers, reconnecting
relations      tables and views of an AsyncSession
results        what a statement gave
session        RemoteSession: the same, for programs without an event loop
subscriptions  subscriptions of an AsyncSession
tables         tables, views and subscriptions of a RemoteSession
"""

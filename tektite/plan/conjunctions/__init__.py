"""How a conjunction is kept up to date: pure functions from `Match` to a strategy, an order, and what to render."""

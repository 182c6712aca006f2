"""Projected gradient over structured mechanisms: sets, methods, one driver, and the verb for a user's own loss."""

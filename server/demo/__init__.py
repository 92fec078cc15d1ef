"""The demo: two organizations with conversations, posts and calls, created through the public API."""

from server.demo.cast import DEMO_USERS, DemoUser
from server.demo.filling import DemoError, fill

__all__ = ["DEMO_USERS", "DemoError", "DemoUser", "fill"]

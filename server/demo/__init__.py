"""The demo: two organizations whose people talk, put into a running product through its public API."""

from server.demo.cast import DEMO_USERS, DemoUser
from server.demo.filling import DemoError, fill

__all__ = ["DEMO_USERS", "DemoError", "DemoUser", "fill"]

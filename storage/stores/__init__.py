"""Opens the stores of a process."""

from storage.stores.opening import FAN_OUT_MAX_FOLLOWERS, NO_ADDRESS_KEYS, NO_CREDENTIAL_KEYS, open_stores
from storage.stores.stores import Stores

__all__ = ["FAN_OUT_MAX_FOLLOWERS", "NO_ADDRESS_KEYS", "NO_CREDENTIAL_KEYS", "Stores", "open_stores"]

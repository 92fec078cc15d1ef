"""Keys for mail address hashes in tests."""

import base64

from storage.mail.addresses import AddressKeys

KEY = b"no secret at all, just for tests"
ADDRESS_KEYS = AddressKeys([(1, KEY)])
ADDRESS_KEYS_SETTING = f"1:{base64.b64encode(KEY).decode()}"

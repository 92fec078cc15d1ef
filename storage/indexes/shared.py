"""Indexes of mechanisms that several areas use."""

from pymongo import ASCENDING as UP
from pymongo import IndexModel

from storage import idempotency

SHARED_INDEXES: dict[str, list[IndexModel]] = {
    # IdempotencyKeyDocument (storage/idempotency.py)
    "idempotency": [IndexModel([("at", UP)], expireAfterSeconds=idempotency.KEPT_S)],
    # LockDocument and FenceDocument (storage/locks.py)
    "process_locks": [],
    "fences": [],
    "data_version": [],  # DataVersionDocument (storage/migrations/data_version.py)
    # KeyFingerprintsDocument (storage/secrets/key_fingerprints.py)
    "key_fingerprints": [],
    # SecretDocument (storage/secrets/shared_secrets.py)
    "secrets": [],
    # WorkerDocument (storage/heartbeats.py)
    "workers": [IndexModel([("at", UP)], expireAfterSeconds=3600)],
}

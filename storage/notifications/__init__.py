"""The interface to notifications. Other packages import the names of the timeline from here."""

from storage.notifications.relays import NotificationRelay, NotificationWithdrawnRelay, readable_topics
from storage.notifications.timeline import (
    CONVERSATION_KINDS,
    NOTIFICATIONS,
    Notification,
    NotificationKind,
    NotificationStore,
    RemovedNotification,
    TopicPlace,
    notification_id,
    notification_ref,
    notify,
    notify_new_member,
    put_notification,
    remove_notification,
)

__all__ = [
    "CONVERSATION_KINDS",
    "NOTIFICATIONS",
    "Notification",
    "NotificationKind",
    "NotificationRelay",
    "NotificationStore",
    "NotificationWithdrawnRelay",
    "RemovedNotification",
    "TopicPlace",
    "notification_id",
    "notification_ref",
    "notify",
    "notify_new_member",
    "put_notification",
    "readable_topics",
    "remove_notification",
]

"""The interface to notifications. Other packages import the names of the timeline from here."""

from storage.notifications.timeline import (
    NOTIFICATIONS,
    Notification,
    NotificationKind,
    NotificationRelay,
    NotificationStore,
    TopicPlace,
    notification_ref,
    notify,
    notify_new_member,
    put_notification,
    readable_topics,
)

__all__ = [
    "NOTIFICATIONS",
    "Notification",
    "NotificationKind",
    "NotificationRelay",
    "NotificationStore",
    "TopicPlace",
    "notification_ref",
    "notify",
    "notify_new_member",
    "put_notification",
    "readable_topics",
]

"""Examples that the mail providers publish, with fewer of the fields that are not read."""

from typing import Any

# https://docs.aws.amazon.com/ses/latest/dg/notification-examples.html
SES_MAIL = {
    "timestamp": "2016-01-27T14:59:38.237Z",
    "source": "john@example.com",
    "sourceArn": "arn:aws:ses:us-east-1:888888888888:identity/example.com",
    "sourceIp": "127.0.3.0",
    "sendingAccountId": "123456789012",
    "messageId": "00000138111222aa-33322211-cccc-cccc-cccc-ddddaaaa0680-000000",
    "destination": ["jane@example.com", "mary@example.com", "richard@example.com"],
    "headersTruncated": False,
    "headers": [{"name": "From", "value": '"John Doe" <john@example.com>'}, {"name": "Subject", "value": "Hello"}],
    "commonHeaders": {"from": ["John Doe <john@example.com>"], "messageId": "custom-message-ID", "subject": "Hello"},
}
SES_BOUNCE_WITH_DSN: dict[str, Any] = {
    "notificationType": "Bounce",
    "bounce": {
        "bounceType": "Permanent",
        "reportingMTA": "dns; email.example.com",
        "bouncedRecipients": [
            {
                "emailAddress": "jane@example.com",
                "status": "5.1.1",
                "action": "failed",
                "diagnosticCode": "smtp; 550 5.1.1 <jane@example.com>... User",
            }
        ],
        "bounceSubType": "General",
        "timestamp": "2016-01-27T14:59:38.237Z",
        "feedbackId": "00000138111222aa-33322211-cccc-cccc-cccc-ddddaaaa068a-000000",
        "remoteMtaIp": "127.0.2.0",
    },
    "mail": SES_MAIL,
}
SES_BOUNCE_WITHOUT_DSN: dict[str, Any] = {
    "notificationType": "Bounce",
    "bounce": {
        "bounceType": "Permanent",
        "bounceSubType": "General",
        "bouncedRecipients": [{"emailAddress": "jane@example.com"}, {"emailAddress": "richard@example.com"}],
        "timestamp": "2016-01-27T14:59:38.237Z",
        "feedbackId": "00000137860315fd-869464a4-8680-4114-98d3-716fe35851f9-000000",
        "remoteMtaIp": "127.0.2.0",
    },
    "mail": SES_MAIL,
}
SES_COMPLAINT: dict[str, Any] = {
    "notificationType": "Complaint",
    "complaint": {
        "userAgent": "AnyCompany Feedback Loop (V0.01)",
        "complainedRecipients": [{"emailAddress": "richard@example.com"}],
        "complaintFeedbackType": "abuse",
        "arrivalDate": "2016-01-27T14:59:38.237Z",
        "timestamp": "2016-01-27T14:59:38.237Z",
        "feedbackId": "000001378603177f-18c07c78-fa81-4a58-9dd1-fedc3cb8f49a-000000",
    },
    "mail": SES_MAIL,
}
SES_DELIVERY: dict[str, Any] = {
    "notificationType": "Delivery",
    "mail": SES_MAIL,
    "delivery": {
        "timestamp": "2016-01-27T14:59:38.237Z",
        "recipients": ["jane@example.com"],
        "processingTimeMillis": 546,
        "reportingMTA": "a8-70.smtp-out.amazonses.com",
        "smtpResponse": "250 ok:  Message 64111812 accepted",
        "remoteMtaIp": "127.0.2.0",
    },
}

# https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html
SES_RECIPIENTS = [
    {
        "status": "5.0.0",
        "action": "failed",
        "diagnosticCode": "smtp; 550 user unknown",
        "emailAddress": "recipient1@example.com",
    },
    {"status": "4.0.0", "action": "delayed", "emailAddress": "recipient2@example.com"},
]

# https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-examples.html
SES_BOUNCE_EVENT: dict[str, Any] = {
    "eventType": "Bounce",
    "bounce": {
        "bounceType": "Permanent",
        "bounceSubType": "General",
        "bouncedRecipients": [
            {
                "emailAddress": "recipient@example.com",
                "action": "failed",
                "status": "5.1.1",
                "diagnosticCode": "smtp; 550 5.1.1 user unknown",
            }
        ],
        "timestamp": "2017-08-05T00:41:02.669Z",
        "feedbackId": "01000157c44f053b-61b59c11-9236-11e6-8f96-7be8aexample-000000",
        "reportingMTA": "dsn; mta.example.com",
    },
    "mail": {
        "timestamp": "2017-08-05T00:40:02.012Z",
        "source": "Sender Name <sender@example.com>",
        "messageId": "EXAMPLE7c191be45-e9aedb9a-02f9-4d12-a87d-dd0099a07f8a-000000",
        "destination": ["recipient@example.com"],
        "tags": {"ses:configuration-set": ["ConfigSet"]},
    },
}
SES_REJECT_EVENT: dict[str, Any] = {
    "eventType": "Reject",
    "mail": {"messageId": "EXAMPLE7c191be45-e9aedb9a-02f9-4d12-a87d-dd0099a07f8a-000000"},
    "reject": {"reason": "Bad content"},
}

# https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
SNS_NOTIFICATION: dict[str, Any] = {
    "Type": "Notification",
    "MessageId": "4d4dc071-ddbf-465d-bba8-08f81c89da64",
    "TopicArn": "arn:aws:sns:us-east-2:123456789012:s4-MySNSTopic-1G1WEFCOXTC0P",
    "Subject": "My subject",
    "Message": "My Test Message",
    "Timestamp": "2019-01-31T04:37:04.321Z",
}
SNS_NOTIFICATION_TEXT = """\
Message
My Test Message
MessageId
4d4dc071-ddbf-465d-bba8-08f81c89da64
Subject
My subject
Timestamp
2019-01-31T04:37:04.321Z
TopicArn
arn:aws:sns:us-east-2:123456789012:s4-MySNSTopic-1G1WEFCOXTC0P
Type
Notification
"""
SNS_CONFIRMATION: dict[str, Any] = {
    "Type": "SubscriptionConfirmation",
    "MessageId": "3d891288-136d-417f-bc05-901c108273ee",
    "Token": "233...",
    "TopicArn": "arn:aws:sns:us-east-2:123456789012:s4-MySNSTopic-1G1WEFCOXTC0P",
    "Message": "My Test Message",
    "SubscribeURL": "https://sns.us-east-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn="
    "arn:aws:sns:us-east-2:123456789012:s4-MySNSTopic-1G1WEFCOXTC0P&Token=233...",
    "Timestamp": "2019-01-31T19:25:13.719Z",
}
SNS_CONFIRMATION_TEXT = """\
Message
My Test Message
MessageId
3d891288-136d-417f-bc05-901c108273ee
SubscribeURL
https://sns.us-east-2.amazonaws.com/?Action=ConfirmSubscription&TopicArn=\
arn:aws:sns:us-east-2:123456789012:s4-MySNSTopic-1G1WEFCOXTC0P&Token=233...
Timestamp
2019-01-31T19:25:13.719Z
Token
233...
TopicArn
arn:aws:sns:us-east-2:123456789012:s4-MySNSTopic-1G1WEFCOXTC0P
Type
SubscriptionConfirmation
"""

# https://github.com/sendgrid/sendgrid-python, test/unit/test_eventwebhook.py: a request that SendGrid has signed.
SENDGRID_KEY = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6w"
    "EA3F+g=="
)
SENDGRID_OTHER_KEY = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqTxd43gyp8IOEto2LdIfjRQrIbsd4SXZkLW6jDutdhXSJCWHw8REntlo7aNDthvj+y7GjUuFDb/R1NGe1"
    "OPzpA=="
)
SENDGRID_SIGNATURE = "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM="
SENDGRID_TIMESTAMP = "1600112502"
SENDGRID_BODY = (
    b'[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address",'
    b'"sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA",'
    b'"sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0",'
    b'"smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]\r\n'
)

# https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
_SENDGRID = {
    "email": "example@test.com",
    "timestamp": 1513299569,
    "smtp-id": "<14c5d75ce93.dfd.64b469@ismtpd-555>",
    "category": ["cat facts"],
    "sg_message_id": "14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0",
}
SENDGRID_BOUNCE: dict[str, Any] = _SENDGRID | {
    "event": "bounce",
    "bounce_classification": "Invalid Address",
    "sg_event_id": "6g4ZI7SA-xmRDv57GoPIPw==",
    "reason": "500 unknown recipient",
    "status": "5.0.0",
    "type": "bounce",
}
SENDGRID_DELIVERED: dict[str, Any] = _SENDGRID | {
    "event": "delivered",
    "sg_event_id": "JldC9f3XVTlK_oXSX9Iuyw==",
    "response": "250 OK",
}
SENDGRID_DEFERRED: dict[str, Any] = _SENDGRID | {
    "event": "deferred",
    "sg_event_id": "uTpAladEvbUf4edikd-F6w==",
    "response": "400 try again later",
    "attempt": "5",
}
SENDGRID_SPAM_REPORT: dict[str, Any] = _SENDGRID | {"event": "spamreport", "sg_event_id": "37nvH5QBz858KGVYCM4uOA=="}

# https://postmarkapp.com/email-webhooks and https://postmarkapp.com/developer/webhooks/delivery-webhook
POSTMARK_BOUNCE: dict[str, Any] = {
    "RecordType": "Bounce",
    "ID": 42,
    "Type": "HardBounce",
    "TypeCode": 1,
    "Name": "Hard bounce",
    "Tag": "Test",
    "MessageID": "883953f4-6105-42a2-a16a-77a8eac79483",
    "Description": "The server was unable to deliver your message (ex: unknown user, mailbox not found).",
    "Details": "Test bounce details",
    "Email": "john@example.com",
    "BouncedAt": "2014-08-01T13:28:10.2735393-04:00",
    "DumpAvailable": True,
    "Inactive": True,
    "CanActivate": True,
    "Subject": "Test subject",
    "Metadata": {"user_id": 43},
}
POSTMARK_COMPLAINT: dict[str, Any] = POSTMARK_BOUNCE | {
    "RecordType": "SpamComplaint",
    "Type": "SpamComplaint",
    "TypeCode": 100001,
    "Name": "Spam complaint",
    "Description": "The subscriber explicitly marked this message as spam.",
    "Details": "Test spam complaint details",
}
POSTMARK_DELIVERY: dict[str, Any] = {
    "RecordType": "Delivery",
    "ServerID": 23,
    "MessageStream": "outbound",
    "MessageID": "883953f4-6105-42a2-a16a-77a8eac79483",
    "Recipient": "john@example.com",
    "Tag": "welcome-email",
    "DeliveredAt": "2019-11-05T16:33:54.9070259Z",
    "Details": "Test delivery webhook details",
    "Metadata": {"a_key": "a_value"},
}

# https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-payloads
MAILGUN_DELIVERED: dict[str, Any] = {
    "event": "delivered",
    "id": "MXcc2gEpS-eN8HfkOnmK2w",
    "timestamp": 1770146431.6585283,
    "message": {"attachments": [], "headers": {"message-id": "20260203192030.53383e583ab41f62@sample.mailgun.com"}},
    "recipient": "recipient@sample.mailgun.com",
    "delivery-status": {
        "attempt-no": 1,
        "code": 250,
        "message": "OK",
        "description": None,
        "enhanced-code": None,
        "mx-host": "mailgun-com.mail.protection.outlook.com",
    },
    "user-variables": [],
}
MAILGUN_PERMANENT: dict[str, Any] = {
    "event": "failed",
    "id": "2kFItcrLQuKTdp-Ia2Xr7w",
    "timestamp": 1770918175.5923693,
    "message": {"attachments": [], "headers": {"message-id": "20260212174255.58bbb7ce85a423e5@mailgun.com"}},
    "recipient": "badrecipient@sample.mailgun.com",
    "reason": "bounce",
    "severity": "permanent",
    "delivery-status": {
        "attempt-no": 1,
        "code": 550,
        "message": "5.5.0 Requested action not taken: mailbox unavailable (S2017062302). "
        "[BN3PEPF0000B36D.namprd21.prod.outlook.com 2026-02-12T17:42:55.527Z 08DE657A58651558]",
        "description": None,
        "enhanced-code": "5.5.0",
        "bounce-type": "hard",
    },
}
MAILGUN_TEMPORARY: dict[str, Any] = {
    "event": "failed",
    "id": "YusK9KhoTwe2C00iRxsEqQ",
    "timestamp": 1770919267.4288595,
    "message": {"headers": {"message-id": "20260212180106.5c8f35804ae3fd54@sample.mailgun.com"}},
    "recipient": "tempfailrecipient@sample.mailgun.com",
    "reason": "generic",
    "severity": "temporary",
    "delivery-status": {"attempt-no": 1, "code": 421, "retry-seconds": 600, "enhanced-code": None},
}
MAILGUN_COMPLAINED: dict[str, Any] = {
    "event": "complained",
    "id": "rIVDlyk8SY-mJauQoYmNFA",
    "timestamp": 1770920772.2684145,
    "message": {"headers": {"message-id": "20260212182531.0d5ed3254c319957@sample.mailgun.com"}},
    "recipient": "recipient@sample.mailgun.com",
    "envelope": {"sending-ip": "161.38.194.10"},
}
MAILGUN_OPENED: dict[str, Any] = {
    "event": "opened",
    "id": "q7DMpbLFRKW1QuiLC9XV4Q",
    "timestamp": 1770327074.5549328,
    "recipient": "recipient@sample.mailgun.com",
}

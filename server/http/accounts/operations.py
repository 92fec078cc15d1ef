"""Descriptions of the operations of account routes, and their answers."""

from datetime import datetime

from server.http.accounts.inputs import (
    FirstAdminAccount,
    InvitationLink,
    InvitedAccount,
    MailRequest,
    NewAccountOptions,
    PasswordChange,
    PasswordReset,
    PasswordSignIn,
    Registration,
    VerifiedAccount,
)
from server.http.openapi import Answer, AnswerModel, Body, EmptyAnswer, Operation, Scheme, Tag
from server.http.passkeys import OPTIONS_ANSWER
from server.http.sessions import SIGNED_IN
from storage.identity.accounts.invitations import InvitationState
from storage.identity.roles import Role


class InvitationContent(AnswerModel):
    """The content of an invitation. `address` is set if it is for a mail address, `community` is a name."""

    state: InvitationState
    role: Role
    address: str | None
    community: str | None
    expires_at: datetime


MAILED = Answer("A mail with a link follows, where one is due.", EmptyAnswer)

SIGN_IN = Operation(
    id="signInWithPassword",
    tag=Tag.SIGN_IN,
    summary="Sign in with a mail address and a password",
    body=Body([PasswordSignIn]),
    answers={200: SIGNED_IN},
    errors=(401, 429),
)
CREATE = Operation(
    id="createAccount",
    tag=Tag.ACCOUNTS,
    summary="Create an account by a link, or ask for a mail that proves the address",
    description="An account of the first ADMIN or by an invitation for a mail address is created at once. By an "
    "invitation for anybody, and with open registration, a mail with a link is sent first.",
    body=Body([FirstAdminAccount, InvitedAccount, Registration]),
    answers={201: SIGNED_IN, 202: MAILED},
    errors=(404, 409, 429),
)
SHOW_INVITATION = Operation(
    id="showInvitation",
    tag=Tag.ACCOUNTS,
    summary="Show what an invitation offers",
    body=Body([InvitationLink]),
    answers={200: Answer("The content of the invitation.", InvitationContent)},
    errors=(404, 429),
)
BEGIN_PASSKEY = Operation(
    id="beginPasskeyOfNewAccount",
    tag=Tag.ACCOUNTS,
    summary="Get the options for the passkey of a new account",
    body=Body([NewAccountOptions]),
    answers={200: OPTIONS_ANSWER},
    errors=(404, 429),
)
CREATE_VERIFIED = Operation(
    id="createVerifiedAccount",
    tag=Tag.ACCOUNTS,
    summary="Create an account by a mailed link",
    body=Body([VerifiedAccount]),
    answers={201: SIGNED_IN},
    errors=(404, 409, 429),
)
REQUEST_RESET = Operation(
    id="requestPasswordReset",
    tag=Tag.ACCOUNTS,
    summary="Ask for a mail with a link to choose another password",
    description="The answer is the same without an account.",
    body=Body([MailRequest]),
    answers={202: MAILED},
    errors=(429,),
)
RESET = Operation(
    id="resetPassword",
    tag=Tag.ACCOUNTS,
    summary="Choose another password by a mailed link",
    description="All sessions of the person end.",
    body=Body([PasswordReset]),
    answers={200: Answer("The password is changed.", EmptyAnswer)},
    errors=(404, 429),
)
CHANGE_PASSWORD = Operation(
    id="changePassword",
    tag=Tag.ACCOUNTS,
    summary="Change the password of the person who is signed in",
    description="The person's other sessions end.",
    body=Body([PasswordChange]),
    answers={200: Answer("The password is changed.", EmptyAnswer)},
    errors=(401, 429),
    security={Scheme.SESSION: ()},
)

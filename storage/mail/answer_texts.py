"""Reads in the texts of mail servers' answers whose fault it was that a message was not delivered.

Servers use one code for many reasons, and their texts tell more. Addresses, links and the name of the answering host
are removed before a text is read, since they may contain any word.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

MAX_CHARS = 1000
"""How many characters of a text are read. The reason stands at the beginning."""


class AnswerTopic(StrEnum):
    """Subject of a text."""

    SENDER = "sender"
    SENDING_HOST = "sending host"
    REPUTATION = "reputation"
    AUTHENTICATION = "authentication"
    RATE = "rate"
    ANSWER_TO_SENDER = "answer to the sender"
    """Postfix adds which command an answer is to. Before the recipient is named, it can't be about the recipient."""

    MAILBOX_FULL = "mailbox full"
    SIZE = "size"
    CONTENT = "content"
    NULL_MX = "null MX"
    NO_SUCH_DOMAIN = "no such domain"
    NO_SUCH_MAILBOX = "no such mailbox"
    MAILBOX_UNAVAILABLE = "mailbox unavailable"
    """The example text of RFC 5321 for code 550, which servers also use for a refusal by policy."""


@dataclass(frozen=True, slots=True)
class _TopicPattern:
    topic: AnswerTopic
    pattern: re.Pattern[str]


def _topic(topic: AnswerTopic, *alternatives: str) -> _TopicPattern:
    return _TopicPattern(topic, re.compile("|".join(alternatives), re.IGNORECASE))


_NOT = r"(?:does|do|did|has|have|is|was|can|could)(?: not|n['’]?t)"
_MAIL = r"(?:e-?)?mails?"
_RECIPIENT = (
    r"(?:users?|userid|username|recipients?|mail ?box(?:es)?|addressee|accounts?|person|customer|subscriber|alias"
    r"|local[- ]part|destination|inbox|address(?:es)?)"
)
_GONE = (
    r"(?:unknown|not (?:be )?(?:known|found|listed|exist|valid|active|recogni[sz]ed|registered|local)|not an? (?:valid|"
    r"known|active)|n['’]?t (?:exist|valid|known|found)|invalid|no such|disabled|inactiv\w+|suspended|deactivated"
    r"|no longer|has moved|unrouteable|non-?exist[ae]nt)"
)
_ENDED = r"(?:is|was|been|has) (?:closed|cancell?ed|terminated|discontinued|deleted|expired|frozen|removed)"

_TOPICS = (
    _topic(
        AnswerTopic.SENDER,
        r"\bsender(?:'s|s)?[- ](?:address|domain|e-?mail|verif\w*|policy|id\b|ip\b|host|name|denied|rejected|blocked"
        r"|refused|unknown|invalid|not |is |was |has |must|does|on\b)",
        r"(?:unknown|invalid|bad|envelope|forged|your|illegal|unauthori[sz]ed|null|empty|blocked|banned|denied|rejected"
        r"|unresolvable|unverified|unverifiable|spoofed|denying|verify) sender\b",
        r"\breturn[- ]path\b",
        r"(?<!in reply to )\bmail[- ]from\b",
        r"\bfrom[-: ]?(?:address|header|domain|field)\b",
        r"\bdomaine? (?:de l['’ ])?(?:expéditeur|émetteur)",
    ),
    _topic(
        AnswerTopic.SENDING_HOST,
        r"(?<!in reply to )\b(?:helo|ehlo)\b",
        r"\breverse[- ](?:dns|lookup|hostname|host)\b|\brdns\b|\bptr\b",
        r"\bclient host name\b|find your (?:reverse )?host ?name",
        r"\brelay(?:ing)? (?:is |was )?(?:access |mail )?(?:denied|not (?:permitted|allowed)|prohibited|forbidden)",
        r"\b(?:unable|not permitted|not allowed|refus\w+|not) to relay\b",
        r"\bdo(?: not|n['’]t) relay\b|\bnot relay(?:ing)?\b",
    ),
    _topic(
        AnswerTopic.REPUTATION,
        r"\b(?:block|black|deny|reject)[- ]?(?:list\w*|ed (?:using|by|for|because)|ed due to (?!inactiv))",
        r"\bdns ?[bw]l\b|\brbls?\b|spamhaus|spamcop|barracuda|sorbs|senderscore|talos|abusix|uceprotect|invaluement",
        r"\breputation\b|\bbanned\b|\bclient (?:host|ip)\b",
        r"\b(?:ips?|ip[- ]address(?:es)?|network)\b.{0,60}?\b(?:blocked|listed|denied|refused|banned|not allowed)",
        r"\b(?:server|hosts?)\b.{0,60}?\b(?:blocked|banned|rejected)",
        r"\blisted (?:in|on|at|by) (?!.{0,20}(?:directory|address book))",
        r"\b(?:policy|policies)\b|\badministratively\b|\bprohibited\b|\babus(?:e|ive)\b|\bcomplaints?\b",
        r"\baccess denied\b(?!\.? AS\()|\bnot authori[sz]ed\b",
    ),
    _topic(
        AnswerTopic.AUTHENTICATION,
        r"\b(?:spf|dkim|dmarc|domainkeys)\b",
        r"\bunauthenticated\b|\bnot authenticated\b|\bauthentication\b|\bauth(?:entication)? ?required\b|AuthRequired",
        r"\b(?:tls|starttls|encryption)\b",
    ),
    _topic(
        AnswerTopic.RATE,
        r"\brate\b|\brate[- ]?limit|\bthrottl",
        r"\btoo many (?:\w+ ){0,2}?(?:connections?|messages?(?! (?:in|stored))|e?-?mails?|recipients|requests"
        r"|sessions|errors|commands|attempts)|\btoo much (?:mail|traffic)|\btoo (?:fast|frequent|often)",
        r"\b(?:hourly|daily|sending|outgoing|connections?|sessions?|threads?|concurren\w+) (?:\w+ )?(?:limit|quota)",
        r"\bper (?:hour|minute|day|connection|session)\b",
    ),
    _topic(AnswerTopic.ANSWER_TO_SENDER, r"\bin reply to (?:mail from|helo|ehlo) command"),
    _topic(
        AnswerTopic.MAILBOX_FULL,
        rf"\b{_RECIPIENT}\b.{{0,60}}?(?:\bfull\b|over[- ]?(?:its |the |their )?(?:disk |storage )?quota|exceed\w* "
        r"(?:\w+ ){0,3}(?:quota|storage)|quota exceeded|out of (?:disk |storage )?space)",
        r"\b(?:mail ?box|account|inbox|user|recipient)\b.{0,30}?\bexceed",
        r"\bover[- ]?quota\b|\b(?:disk|storage|mail ?box|disc) ?quota\b",
        r"\bquota (?:\w+ )?(?:exceeded|is full)|\bquotaexceeded",
        r"\bexceed\w* (?:\w+ ){0,4}(?:quota|storage)|\bout of storage\b|\bnot enough (?:\w+ )?(?:storage|space)",
        r"\btoo many messages (?:in|stored)|\binsufficient (?:disk )?(?:space|quota)",
        r"\bexhausted \w+ storage|speichervolumen|容量|いっぱい|已满",
        r"переполнен|postfach (?:ist )?voll|bo[iî]te pleine|buz[oó]n lleno",
    ),
    _topic(
        AnswerTopic.SIZE,
        r"\b(?:message|mail|attachment|header|content|size|data)s?\b.{0,60}?(?:too (?:big|large|long)|exceed"
        r"|larger than|size limit)",
        r"\b(?:size|length) limit|\b(?:maximum|max|maximal) (?:allowed |message |permitted |mail )*size",
    ),
    _topic(
        AnswerTopic.CONTENT,
        r"(?<!anti-)(?<!anti )\bspam(?:my|ming|-like)?\b|\bjunk\b|\bvirus|\bmalware\b|\bphish|\bunsolicited\b|\bbulk\b",
        r"\bcontents?\b|\bsuspicious\b|\battachments?\b|\bcharacter set\b|\bmessage header",
    ),
    _topic(
        AnswerTopic.NULL_MX,
        r"\bnull[- ]?mx\b",
        rf"\bdomain\b.{{0,100}}?(?:{_NOT} accept|accepts no|never accepts) (?:any )?(?:incoming )?{_MAIL}\b(?! from)",
    ),
    _topic(
        AnswerTopic.NO_SUCH_DOMAIN,
        r"\b(?:host or )?domain(?: name)?\b.{0,60}?(?:not found|not exist|n['’]t exist|unknown|invalid|nonexist[ae]nt)",
        r"\b(?:unknown|invalid|no such|non-?exist[ae]nt|bad|illegal) (?:\w+ )?(?:domain|host)\b",
        r"\bhost (?:or domain )?(?:name )?not found\b|\bnxdomain\b|\bno mail hosts?\b|\bno mx\b",
    ),
    _topic(
        AnswerTopic.NO_SUCH_MAILBOX,
        rf"\b(?:unknown|no such|invalid|non-?exist[ae]nt|not an? (?:valid|known)|no|bad|illegal|unrecogni[sz]ed"
        rf"|undeliverable|inactive|disabled|unrouteable|deactivated|closed|expired)"
        rf" (?:(?:or \w+|local|virtual|mail|e-?mail|smtp|destination|delivery) ){{0,3}}{_RECIPIENT}\b",
        rf"\b{_RECIPIENT}\b.{{0,80}}?(?<!temporarily ){_GONE}",
        rf"\b{_RECIPIENT} (?:\w+ ){{0,2}}?{_ENDED}\b",
        rf"\b{_NOT} have an? .{{0,40}}?\baccount\b|\b{_NOT} have (?:this|that|such) ",
        r"\bunknown in .{0,40}table|\b(?:not|isn['’]t) (?:in|listed in) .{0,60}?(?:directory|address book)",
        r"\brecip(?:ient)?notfound|\bnosuchuser|\buser ?unknown|\bunknown ?user",
        r"\bno longer (?:valid|available|active|in use|exists?|accepts?|accepting|works?|employed|with|on)\b",
        r"\bno one by that name|\bnobody (?:here )?by that name|\bno (?:\w+ )?(?:here )?by that name",
        # Exchange Online, if its directory does not have the recipient.
        r"\brecipient address rejected: access denied\.? AS\(",
        r"\bthere is no one at this address|\bnot (?:our|a) customer",
        r"\b(?:unbekannte[rs]?|ungültige[rs]?) (?:benutzer|empfänger|adresse)|(?:empfänger|benutzer|postfach|adresse)"
        r"\b.{0,40}?(?:unbekannt|existiert nicht|nicht gefunden|ungültig|deaktiviert)",
        r"(?:utilisateur|destinataire|bo[iî]te|adresse)\b.{0,40}?(?:inconnue?|inexistante?|invalide|désactivée?|n['’]existe)",
        r"(?:usuario|usu[aá]rio|destinat[aá]rio|buz[oó]n|cuenta|conta|direcci[oó]n)\b.{0,40}?(?:desconocid[oa]|inexistente"
        r"|no existe|desconhecid[oa]|n[aã]o existe|inv[aá]lid[oa])",
        r"(?:utente|casella|destinatario|indirizzo)\b.{0,40}?(?:sconosciut[oa]|inesistente|non esiste|disabilitat[oa])",
        r"(?:пользовател|получател|ящик|адрес).{0,40}?(?:не найден|не существует|неизвест|заблокирован|отключ)"
        r"|нет такого (?:пользователя|получателя|ящика)|(?:несуществующ|неизвестн)\w+ (?:пользователь|получатель|ящик)",
        r"(?:用户|用戶|收件人|邮箱|郵箱|信箱|帐号|账号|地址).{0,20}?(?:不存在|无效|不可用|已停用|未找到|被禁用)|无此用户|查无此人",
        r"(?:ユーザー?|宛先|アドレス|メールボックス|アカウント|受信者).{0,20}?(?:存在しま|存在しない|見つかりま|不明|ありません|無効)",
    ),
    _topic(
        AnswerTopic.MAILBOX_UNAVAILABLE,
        r"(?<!temporarily )\b(?:mail ?box|account|recipient|user|address) (?:is |was |currently )?"
        r"(?:unavailable|not available)",
    ),
)
_ADDRESS_OR_LINK = re.compile(r"https?://\S*|<[^<>\s]{0,320}>|[^\s<>\"'()\[\]:;,]{1,64}@[^\s<>\"'()\[\]:;,]{1,255}")
_HOST = re.compile(r"\bhost \S+ (?:said|refused to talk to me):", re.IGNORECASE)
_NAME_SERVICE_NAME = re.compile(r"name service error for name=(\S+)", re.IGNORECASE)


def answer_topic(text: str) -> AnswerTopic | None:
    """Returns the first topic of `AnswerTopic` that the text mentions; None if it says nothing about the reason.

    The sender's faults come before the recipient's. A refusal of the sender often mentions the recipient too.
    """
    return _topic_of_words(_without_names(text)) if text else None


# Servers repeat their texts, once the addresses are removed.
@lru_cache(maxsize=1024)
def _topic_of_words(words: str) -> AnswerTopic | None:
    return next((each.topic for each in _TOPICS if each.pattern.search(words)), None)


def _without_names(text: str) -> str:
    """Returns the text on one line, without addresses, links and the name of the answering host."""
    words = _HOST.sub(" ", _ADDRESS_OR_LINK.sub(" ", text[:MAX_CHARS]))
    return " ".join(words.split())


def names_other_host(text: str, domain: str) -> bool:
    """Returns whether a failed name lookup was for another host than the domain, such as the sender's relay."""
    match = _NAME_SERVICE_NAME.search(text)
    if match is None:
        return False
    name = match[1].rstrip(".").lower()
    return not (name == domain or name.endswith(f".{domain}"))

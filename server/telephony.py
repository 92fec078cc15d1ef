"""The telephony provider that the settings name."""

from collections.abc import Callable

from jobs.providers.telephony import Telephony
from jobs.providers.telephony.simulator import Simulator
from jobs.providers.telephony.twilio import API_URL, TwilioTelephony
from jobs.providers.telephony.webhook import WebhookTelephony
from server.settings import Settings, SettingsError, variable
from storage.calls.records import SERVER_LINE_ID, TelephonyLine, TelephonyProvider
from storage.secrets.webhook_keys import webhook_key
from storage.stores import Stores

TELEPHONY_CALLBACK, TWILIO_CALLBACK = "/callbacks/telephony", "/callbacks/twilio"
SIMULATOR = "simulator"


def telephony_provider(settings: Settings) -> str | None:
    """Returns the name of the configured telephony provider; without one, the simulator for the demo, else None."""
    return settings.telephony or (SIMULATOR if settings.demo else None)


def telephony_lines(settings: Settings) -> tuple[TelephonyLine, ...]:
    """Returns the line that the settings define; nothing without a provider. Secrets and addresses are left out."""
    name = telephony_provider(settings)
    if name is None:
        return ()
    provider = TelephonyProvider[name.upper()]
    caller = settings.twilio_from if provider is TelephonyProvider.TWILIO else None
    return (TelephonyLine(SERVER_LINE_ID, provider, caller),)


def make_telephony(settings: Settings, stores: Stores) -> Telephony | None:
    """Returns the telephony provider; None if there is none. Raises: SettingsError if a setting of it is missing."""
    check_telephony(settings)
    name = telephony_provider(settings)
    if name is None:
        return None
    return _PROVIDERS[TelephonyProvider[name.upper()]](settings, stores)


def _make_simulator(settings: Settings, stores: Stores) -> Telephony:
    return Simulator(stores.mongo, stores.calls.report, settings.simulator_speed)


def _make_webhook(settings: Settings, _: Stores) -> Telephony:
    assert settings.telephony_url is not None
    assert settings.telephony_secret is not None
    return WebhookTelephony(settings.telephony_url, settings.telephony_secret, settings.base_url + TELEPHONY_CALLBACK)


def _make_twilio(settings: Settings, _: Stores) -> Telephony:
    account, token, caller = settings.twilio_account, settings.twilio_token, settings.twilio_from
    assert account is not None
    assert token is not None
    assert caller is not None
    callback_url = settings.base_url + TWILIO_CALLBACK
    return TwilioTelephony(account, token, caller, callback_url, settings.telephony_url or API_URL)


_PROVIDERS: dict[TelephonyProvider, Callable[[Settings, Stores], Telephony]] = {
    TelephonyProvider.SIMULATOR: _make_simulator,
    TelephonyProvider.WEBHOOK: _make_webhook,
    TelephonyProvider.TWILIO: _make_twilio,
}
"""The function that makes each provider. A provider without one raises, so that no other provider answers for it."""


_REQUIRED_SETTINGS = {
    "webhook": ("telephony_url", "telephony_secret"),
    "twilio": ("twilio_account", "twilio_token", "twilio_from"),
}


def check_telephony(settings: Settings) -> None:
    """Raises: SettingsError when a setting of the chosen telephony provider is missing."""
    required = _REQUIRED_SETTINGS.get(settings.telephony or "", ())
    missing = [variable(name) for name in required if not getattr(settings, name)]
    if missing:
        raise SettingsError(f"{variable('telephony')}={settings.telephony} needs {', '.join(missing)}")
    if settings.telephony_secret is not None:
        try:
            webhook_key(settings.telephony_secret)
        except ValueError as error:
            raise SettingsError(f"{variable('telephony_secret')}: {error}") from None

"""Settings of the apps by which social networks know this server."""

from server.setting_groups.graphql import GraphqlSettings
from server.setting_groups.values import setting


class NetworkSettings(GraphqlSettings):
    """The apps at social networks. Mastodon needs none: an app is registered at each server."""

    x_client_id: str | None = setting(
        None,
        expected="the OAuth 2.0 client id of an app",
        description="The app at X by which accounts are connected in a browser, and their tokens renewed. For web and "
        "worker processes.",
    )
    x_client_secret: str | None = setting(
        None,
        secret=True,
        expected="the OAuth 2.0 client secret of the app",
        description="The secret of the app at X. If unset, the app is a public client.",
    )
    instagram_client_id: str | None = setting(
        None,
        expected="the Instagram app id",
        description="The app of the API with Instagram Login by which accounts are connected in a browser. Needs "
        "NOROSHI_INSTAGRAM_CLIENT_SECRET.",
    )
    instagram_client_secret: str | None = setting(
        None,
        secret=True,
        expected="the Instagram app secret",
        description="The secret of the app at Instagram.",
    )

    @property
    def oauth_apps(self) -> dict[str, tuple[str, str | None]]:
        """Id and secret of each app that is set, by the name of its network."""
        apps: dict[str, tuple[str, str | None]] = {}
        if self.x_client_id is not None:
            apps["X"] = self.x_client_id, self.x_client_secret
        if self.instagram_client_id is not None and self.instagram_client_secret is not None:
            apps["INSTAGRAM"] = self.instagram_client_id, self.instagram_client_secret
        return apps

"""Sign-in at an identity provider by OpenID Connect: code flow with PKCE, and back-channel logout."""

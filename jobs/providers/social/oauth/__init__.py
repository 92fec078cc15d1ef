"""OAuth 2 at social networks: authorization, exchange of codes, and renewal of tokens."""

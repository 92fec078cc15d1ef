"""Cookies of this server: sent with https only, and hidden from the scripts of pages."""

from typing import Literal

from starlette.responses import Response

SameSite = Literal["lax", "strict"]
"""Whether a link on a page of another site sends the cookie ("lax") or not ("strict")."""


def with_cookie(response: Response, name: str, value: str, max_age_s: int, same_site: SameSite) -> Response:
    """Adds a cookie to a response, and returns the response."""
    response.set_cookie(name, value, max_age=max_age_s, path="/", secure=True, httponly=True, samesite=same_site)
    return response


def without_cookie(response: Response, name: str, same_site: SameSite) -> Response:
    """Makes the browser delete a cookie. Returns the response."""
    response.delete_cookie(name, path="/", secure=True, httponly=True, samesite=same_site)
    return response

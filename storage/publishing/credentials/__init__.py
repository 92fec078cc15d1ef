"""How accounts get credentials in a browser, how long these last, and their renewal."""

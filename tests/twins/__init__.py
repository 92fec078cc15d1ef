"""Local twins of social networks: they enforce the documented rules, fail on request, and record every post."""

"""Mail bounces: aggregation, reports, summaries and the Postfix log."""

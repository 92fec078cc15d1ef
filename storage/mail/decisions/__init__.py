"""What operators decide about mail: the policy of an organization, and the record of their changes."""

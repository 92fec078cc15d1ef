"""Communities, topics, messages, reactions: the records, the reads, and the changes that the sequencer commits."""

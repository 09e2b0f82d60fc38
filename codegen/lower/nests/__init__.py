"""From a schedule to loop nests."""

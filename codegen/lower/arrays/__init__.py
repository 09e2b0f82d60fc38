"""From a schedule to the instructions of a plan on whole arrays and blocks of rows."""

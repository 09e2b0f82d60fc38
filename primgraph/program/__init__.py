"""Programs: what a user builds, what compiles and runs it, and where its states live."""

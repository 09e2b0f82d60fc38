"""Conditions under which values matter: masks and guards."""

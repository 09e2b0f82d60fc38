"""From a plan to text: printers of both styles, of scalar code, of files that stand alone."""

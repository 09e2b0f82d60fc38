"""Files of C that need nothing but the C library: what goes onto machines without Python."""
